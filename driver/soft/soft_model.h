// One model as the software NPU holds it: weights, kernels and programs.

#ifndef DRIVER_SOFT_SOFT_MODEL_H_
#define DRIVER_SOFT_SOFT_MODEL_H_

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "driver/device.h"
#include "driver/soft/graph/fold.h"
#include "driver/soft/graph/graph.h"
#include "driver/soft/import/options.h"
#include "driver/soft/plan/planner.h"
#include "driver/soft/plan/weights.h"
#include "driver/soft/soc.h"

namespace rknnd::soft {

// Thread: any; immutable once compiled.
class SoftModel final : public driver::Model {
 public:
  // Bytes from a client: not trusted. Thread: any, under SingleThreaded.
  static absl::StatusOr<std::unique_ptr<SoftModel>> Compile(
      std::span<const std::byte> bytes, const std::string& options,
      const std::string& name, const SocProfile& soc);

  [[nodiscard]] const driver::ModelInfo& info() const override { return info_; }
  [[nodiscard]] absl::StatusOr<uint64_t> CheckBinding(
      uint32_t program, driver::Direction direction, uint32_t index,
      const driver::TensorFormat& format) const override;
  [[nodiscard]] driver::SramPlan PlanSram(uint32_t program,
                                          uint64_t bytes) const override;

  [[nodiscard]] const Program& program(uint32_t index) const {
    return programs_[index];
  }
  [[nodiscard]] uint64_t scratch_size() const;

 private:
  explicit SoftModel(uint64_t expected_weights) : weights_(expected_weights) {}

  // Compiles `graph`, whose inputs have the shapes of one row, into a program
  // of its own; what it shares with those before it is stored once.
  absl::Status AddProgram(Graph graph, const ModelOptions& options,
                          const SocProfile& soc, FoldPool* pool);

  driver::ModelInfo info_;
  ModelWeights weights_;
  std::vector<std::unique_ptr<Kernel>> kernels_;  // read the weights
  std::vector<Program> programs_;                 // point at the kernels
};

}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_SOFT_MODEL_H_
