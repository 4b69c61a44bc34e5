// Which layers cut a tensor into pieces, or join pieces to one, that lie one
// behind the other in memory: their bytes need not be copied.
//
// Thread: the loading thread.

#ifndef DRIVER_SOFT_PLAN_PARTS_H_
#define DRIVER_SOFT_PLAN_PARTS_H_

#include <cstdint>
#include <span>
#include <vector>

#include "driver/soft/graph/graph.h"
#include "driver/soft/kernels/operator.h"

namespace rknnd::soft {

// Piece `part` of a whole: an input or output of the node, by its position.
struct PartPlace {
  size_t part = 0;
  uint64_t offset = 0;  // bytes from the start of the whole
};

// The pieces of Concat's output among its inputs; empty for other nodes and
// where they do not lie so.
std::vector<PartPlace> PartsOfOutput(const NodeView& node,
                                     std::span<const TensorSpec> inputs);
// The pieces of input 0 of Split and Slice among the outputs; likewise.
std::vector<PartPlace> PartsOfInput(const NodeView& node,
                                    std::span<const TensorSpec> inputs,
                                    std::span<const TensorSpec> outputs);

}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_PLAN_PARTS_H_
