// What making a plan's kernels found out, kept so that the next start need not
// make them before it answers: sizes, and which pieces of the weight memory
// each of them stored, in their order.
//
// Thread: the loading thread.

#ifndef DRIVER_SOFT_COMPILED_SAVED_PLAN_H_
#define DRIVER_SOFT_COMPILED_SAVED_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "driver/device.h"
#include "driver/soft/compiled/byte_stream.h"
#include "driver/soft/plan/plan_parts.h"
#include "driver/soft/plan/weights.h"

namespace rknnd::soft {

// Pieces are numbers in ModelWeights::pieces().
struct SavedKernel {
  uint64_t scratch = 0;
  // Of PartsFor, for gangs of two, of three, ...
  std::vector<uint32_t> parts;
  std::vector<uint8_t> reads_constant;  // of each input
  std::vector<uint32_t> stores;
  std::string implementation;
  bool is_reference = false;
};

struct SavedPlan {
  std::vector<SavedKernel> kernels;  // as the planner asks for them
  std::vector<uint32_t> keeps;       // likewise
  driver::SramPlan sram;

  void Write(ByteWriter& to) const;
  // Numbers of pieces are below `pieces`, or the reader fails.
  static SavedPlan Read(ByteReader& from, size_t pieces);
};

// Makes the kernels of one plan, as if nobody looked, and notes what they do.
class PlanRecorder final : public PlanParts {
 public:
  // `weights` outlives it.
  explicit PlanRecorder(ModelWeights* weights) : weights_(weights) {}

  absl::StatusOr<std::unique_ptr<Kernel>> MakeKernel(
      const Operator& op, const KernelRequest& request) override;
  absl::StatusOr<const std::byte*> Keep(const Constant& constant,
                                        Placement placement) override;
  absl::StatusOr<driver::SramPlan> ChooseSram(
      std::span<const driver::TensorPlace> tensors, uint64_t bytes,
      uint32_t programs) override;

  // With all of the model stored.
  [[nodiscard]] SavedPlan Take() const;

 private:
  struct Made {
    SavedKernel kernel;
    std::vector<const std::byte*> stores;
  };

  ModelWeights* const weights_;
  std::vector<Made> made_;
  std::vector<const std::byte*> keeps_;
  driver::SramPlan sram_;
};

}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_COMPILED_SAVED_PLAN_H_
