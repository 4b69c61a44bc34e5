// What a quantised network would compute without its 8 bits: the same operators
// on real numbers, with the weights as they are in the file. Quantize and
// Dequantize of tensors go, operators on integers become those on floats. What
// means integers (a Cast, an Argmax of bytes...) still reads integers.
//
// Called by layers_apart.h when a model is loaded with option 'accuracy'.
// Thread: the loading thread.

#ifndef DRIVER_SOFT_ACCURACY_FLOAT_NETWORK_H_
#define DRIVER_SOFT_ACCURACY_FLOAT_NETWORK_H_

#include <vector>

#include "driver/soft/graph/graph.h"

namespace rknnd::soft {

struct FloatNetwork {
  // Begins with the values of the network it was made of; no pass has seen it.
  Graph graph;
  // For each of those values: the one that holds the real numbers it stands
  // for. Of most it is the value itself.
  std::vector<ValueId> reals;
};

// `quantized` has been inferred (InferAndFold with keep_dequantize).
FloatNetwork MakeFloat(const Graph& quantized);

}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_ACCURACY_FLOAT_NETWORK_H_
