// One model as the software NPU holds it: weights, kernels and programs.

#ifndef DRIVER_SOFT_SOFT_MODEL_H_
#define DRIVER_SOFT_SOFT_MODEL_H_

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "driver/device.h"
#include "driver/soft/compiled/restored_kernels.h"
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
  // Weights are shared with the other models of `pool`.
  static absl::StatusOr<std::unique_ptr<SoftModel>> Compile(
      const driver::LoadRequest& request, const SocProfile& soc,
      std::shared_ptr<WeightPool> pool);
  // The same from LoadRequest::compiled. DATA_LOSS when it is not good.
  static absl::StatusOr<std::unique_ptr<SoftModel>> Restore(
      const driver::LoadRequest& request, const SocProfile& soc,
      std::shared_ptr<WeightPool> pool);
  ~SoftModel() override;

  [[nodiscard]] const driver::ModelInfo& info() const override { return info_; }
  [[nodiscard]] absl::StatusOr<uint64_t> CheckBinding(
      uint32_t program, driver::Direction direction, uint32_t index,
      const driver::TensorFormat& format) const override;
  [[nodiscard]] driver::SramPlan PlanSram(uint32_t program,
                                          uint64_t bytes) const override;
  absl::Status CopyWeights(driver::Memory& to, uint64_t offset) const override;
  [[nodiscard]] uint64_t held_weights() const override;
  absl::Status WriteCompiled(
      absl::FunctionRef<absl::Status(std::span<const std::byte>)> write)
      override;
  absl::Status Finish() override;
  // Before each job, and before the weights are read: they are in memory.
  absl::Status Ready() const {
    return restored_ == nullptr ? absl::OkStatus() : restored_->Ready();
  }

  [[nodiscard]] absl::StatusOr<driver::FrameSizes> CheckFrame(
      uint32_t program, uint32_t index,
      const driver::FrameFormat& frame) const override;

  [[nodiscard]] const Program& program(uint32_t index) const {
    return programs_[index];
  }
  [[nodiscard]] uint64_t scratch_size() const;

 private:
  SoftModel(uint64_t expected_weights, std::shared_ptr<WeightPool> pool,
            bool shares);

  // What the compiled form is made of; until Finish.
  struct Recipe;

  // Compiles `graph`, whose inputs have the shapes of one row, into a program
  // of its own; what it shares with those before it is stored once.
  absl::Status AddProgram(Graph graph, const ModelOptions& options,
                          const SocProfile& soc, FoldPool* pool);
  // The plan of a graph that all passes have seen. `listed_rows`: of option
  // 'dynamic_input'.
  absl::Status AddPlan(const Graph& graph, uint32_t batch, uint32_t listed_rows,
                       const SocProfile& soc, PlanParts& parts);
  // All programs are there.
  void Complete();

  driver::ModelInfo info_;
  ModelWeights weights_;
  std::unique_ptr<Recipe> recipe_;
  // Of one that was compiled before; null: compiled now.
  std::unique_ptr<RestoredKernels> restored_;
  std::vector<std::unique_ptr<Kernel>> kernels_;  // read the weights
  std::vector<Program> programs_;                 // point at the kernels
};

}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_SOFT_MODEL_H_
