// What the numbers of a quantised network's 8-bit tensors stand for, as far as
// its nodes say: for the attributes of 8-bit inputs and outputs, and for people
// who look at a layer's output.
//
// Thread: the loading thread.

#ifndef DRIVER_SOFT_GRAPH_TENSOR_SCALES_H_
#define DRIVER_SOFT_GRAPH_TENSOR_SCALES_H_

#include <optional>
#include <vector>

#include "driver/soft/graph/graph.h"

namespace rknnd::soft {

// One for each value; nothing where there is no scale, or one for each channel.
std::vector<std::optional<Quantization>> TensorScales(const Graph& graph);

}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_GRAPH_TENSOR_SCALES_H_
