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
#include "driver/soft/plan/arena_layout.h"
#include "driver/soft/plan/plan_parts.h"
#include "driver/soft/plan/program.h"
#include "driver/soft/plan/weights.h"
#include "driver/soft/timing/program_costs.h"

namespace rknnd::soft {

struct PlanOptions {
  int block = 1;  // channels per block, ChannelBlock()
  // Of the SoC: C2 of NC1HWC2 by what a channel is, the width that images are
  // aligned to, and its SRAM.
  uint32_t half_block = 8, int8_block = 16, int16_block = 8;
  uint32_t width_alignment = 16;
  uint64_t sram_bytes = 0;
  uint32_t cores = 1;     // kernels are made for gangs of up to so many
  uint32_t programs = 1;  // planned for this model, one after the other
};

struct Plan {
  Program program;
  std::vector<std::unique_ptr<Kernel>> kernels;  // the program points at them
  // In the graph; for what layers cost.
  std::vector<LayerNode> layer_nodes;
  // The tensors of the arena, which of them share their bytes, and where the
  // groups of those lie; for tests and measurements. Its places are in
  // ProgramInfo::tensors.
  ArenaPlan arena;
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
// The same with kernels and constants from somewhere else; `weights` is what
// requests for kernels name.
absl::StatusOr<Plan> MakePlan(const Graph& graph,
                              const OperatorTable& operators,
                              const PlanOptions& options, ModelWeights& weights,
                              PlanParts& parts);

}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_PLAN_PLANNER_H_
