// Where the planner gets what takes long: kernels and constants, which weights
// go into, and the choice of tensors for SRAM. Usually all is made from the
// graph; a compiled model brings its own (driver/soft/compiled).
//
// Thread: the loading thread.

#ifndef DRIVER_SOFT_PLAN_PLAN_PARTS_H_
#define DRIVER_SOFT_PLAN_PLAN_PARTS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "absl/status/statusor.h"
#include "driver/device.h"
#include "driver/soft/graph/graph.h"
#include "driver/soft/kernels/operator.h"
#include "driver/soft/plan/sram_plan.h"

namespace rknnd::soft {

// Asked for the same parts in the same order for the same graph.
class PlanParts {
 public:
  virtual ~PlanParts() = default;
  // `op` is the one of the request's node.
  virtual absl::StatusOr<std::unique_ptr<Kernel>> MakeKernel(
      const Operator& op, const KernelRequest& request) = 0;
  // The contents of a constant in this placement.
  virtual absl::StatusOr<const std::byte*> Keep(const Constant& constant,
                                                Placement placement) = 0;
  // What lies in so much SRAM (plan/sram_plan.h); the search takes longer than
  // all other planning.
  virtual absl::StatusOr<driver::SramPlan> ChooseSram(
      std::span<const driver::TensorPlace> tensors, uint64_t bytes,
      uint32_t programs) {
    return PlanSram(tensors, bytes, programs);
  }
};

}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_PLAN_PLAN_PARTS_H_
