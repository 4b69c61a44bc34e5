// What the passes over quantised networks ask about QuantizeLinear and
// DequantizeLinear nodes.
//
// Thread: the loading thread.

#ifndef DRIVER_SOFT_GRAPH_QUANTIZED_H_
#define DRIVER_SOFT_GRAPH_QUANTIZED_H_

#include <optional>
#include <vector>

#include "driver/soft/graph/graph.h"

namespace rknnd::soft {

bool IsQuantize(const Node& node);
bool IsDequantize(const Node& node);
// An operator of ONNX itself.
bool IsStandard(const Node& node, const char* type);

// The input's value, kNoValue where it is left out.
ValueId InputOf(const Node& node, size_t i);
// Its contents, null where they are not known.
const Constant* ConstantOf(const Graph& graph, const Node& node, size_t i);

// Scale and zero point of a Quantize or Dequantize node between real numbers
// and an 8-bit tensor, where there is one known scale for all of it.
std::optional<Quantization> WholeTensor(const Graph& graph, const Node& node);

bool IsEightBit(DataType type);

// Of all values that are not left out.
bool HaveShapes(const Graph& graph, const std::vector<ValueId>& values);

// Whether both nodes mean the same numbers by the same bytes.
bool SameScale(const Graph& graph, const Node& a, const Node& b);

// Neither reads the contents of its data inputs, nor changes any: what holds
// for numbers holds for the bytes that stand for them. MaxPool too: a larger
// byte is a larger number. How many inputs are data; 0: another node.
size_t MovedInputs(const Graph& graph, const Node& node);

}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_GRAPH_QUANTIZED_H_
