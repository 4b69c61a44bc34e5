// Moves a tensor between placements: dense and blocked by channels
// (operator.h). plan/ puts these between kernels that want different ones.

#ifndef DRIVER_SOFT_PLAN_REORDER_H_
#define DRIVER_SOFT_PLAN_REORDER_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "driver/soft/kernels/operator.h"
#include "driver/soft/kernels/work.h"

namespace rknnd::soft {

// Thread: any.
class Reorder {
 public:
  // Same type and shape, two placements.
  Reorder(const TensorSpec& from, const TensorSpec& to);
  void Run(const std::byte* from, std::byte* to, Part part = {}) const;
  // Into how many parts it can be cut.
  [[nodiscard]] int64_t pieces() const;

 private:
  int64_t batch_ = 1, channels_ = 1, pixels_ = 1;
  int block_ = 1;        // of the blocked one; from blocks: of the first
  int other_block_ = 1;  // from blocks to blocks: of the second
  bool to_blocked_ = false;
  size_t element_size_ = 4;
};

class ReorderKernel final : public Kernel {
 public:
  ReorderKernel(const TensorSpec& from, const TensorSpec& to)
      : reorder_(from, to),
        work_{.bytes = static_cast<int64_t>(from.bytes() + to.bytes())} {}
  [[nodiscard]] uint32_t PartsFor(uint32_t cores) const override {
    return PartsOf(work_, reorder_.pieces(), cores);
  }
  absl::Status Run(std::span<const std::byte* const> inputs,
                   std::span<std::byte* const> outputs,
                   std::byte* scratch) const override {
    return RunPart(Part{}, inputs, outputs, scratch);
  }
  absl::Status RunPart(Part part, std::span<const std::byte* const> inputs,
                       std::span<std::byte* const> outputs,
                       std::byte* scratch) const override;

 private:
  Reorder reorder_;
  Work work_;
};

}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_PLAN_REORDER_H_
