// Graph -> Program: kernels made, reorders put between placements, memory laid
// out. Errors name operator and node.
//
// Thread: the loading thread.

#ifndef DRIVER_SOFT_PLAN_PLANNER_H_
#define DRIVER_SOFT_PLAN_PLANNER_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "driver/soft/graph/graph.h"
#include "driver/soft/kernels/operator.h"
#include "driver/soft/plan/memory_plan.h"
#include "driver/soft/plan/program.h"
#include "driver/soft/plan/weights.h"

namespace rknnd::soft {

struct PlanOptions {
  int block = 1;            // channels per block, ChannelBlock()
  uint32_t half_block = 8;  // C2 of half precision on the SoC
};

struct Plan {
  Program program;
  std::vector<std::unique_ptr<Kernel>> kernels;  // the program points at them
  // The tensors of the arena and where they lie; for tests and reports.
  std::vector<Lifetime> lifetimes;
  MemoryPlan memory;
};

// More than a network of this field needs; an arena is as large on each core.
inline constexpr uint64_t kMaxInternalBytes = uint64_t{2} << 30;
// Of one kernel, and held by each core from then on. Convolutions take tens of
// MiB; a Resize whose axes grow and shrink can ask for any size.
inline constexpr uint64_t kMaxScratchBytes = uint64_t{512} << 20;

absl::StatusOr<Plan> MakePlan(const Graph& graph,
                              const OperatorTable& operators,
                              const PlanOptions& options,
                              ModelWeights& weights);

}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_PLAN_PLANNER_H_
