// Which placement each node's inputs and outputs get: dense, or blocked by the
// channels one vector register of this CPU holds. By rule, from the model and
// the CPU's features alone: equal inputs give equal outputs on every start.
//
// Thread: the loading thread.

#ifndef DRIVER_SOFT_PLAN_PLACEMENT_H_
#define DRIVER_SOFT_PLAN_PLACEMENT_H_

#include <vector>

#include "driver/soft/graph/graph.h"
#include "driver/soft/kernels/operator.h"

namespace rknnd::soft {

struct NodePlacement {
  std::vector<Placement> inputs;  // as the node's, then the epilogue's add
  Placement output;               // of all its outputs
};

// `home`: how each value lies where it was made (index: ValueId).
NodePlacement PlaceNode(const Graph& graph, const Node& node,
                        const Operator& op, int block,
                        const std::vector<Placement>& home);

}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_PLAN_PLACEMENT_H_
