// Which operators are ONNX's own. One of these without a kernel here is refused
// when a model is loaded; any other may be one that a program brings itself
// (rknn_custom_op.h), also in the default domain, where exporters leave them.
//
// Thread: any.

#ifndef DRIVER_SOFT_GRAPH_ONNX_OPERATORS_H_
#define DRIVER_SOFT_GRAPH_ONNX_OPERATORS_H_

#include <string>
#include <string_view>
#include <vector>

namespace rknnd::soft {

// Of the default domain, in any version up to opset 24.
bool IsOnnxOperator(std::string_view type);
// All of them, in the order of the alphabet.
std::vector<std::string> OnnxOperators();

}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_GRAPH_ONNX_OPERATORS_H_
