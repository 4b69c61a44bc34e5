// TensorProto -> Constant. Everything in the message is checked: dims against
// the bytes that are there, before anything of that size is allocated.

#ifndef DRIVER_SOFT_IMPORT_TENSOR_IMPORT_H_
#define DRIVER_SOFT_IMPORT_TENSOR_IMPORT_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "driver/soft/graph/graph.h"

namespace onnx {
class TensorProto;
}  // namespace onnx

namespace rknnd::soft {

// The type a tensor of ONNX's TensorProto.DataType number has inside; nothing
// for those that are not numbers.
std::optional<DataType> InnerType(int32_t onnx_type);
// "FLOAT16", or the number itself.
std::string OnnxTypeName(int32_t onnx_type);

// Whether only type and dims are left of it: nothing is stored where something
// belongs.
bool LacksData(const onnx::TensorProto& tensor);

// `what` names the tensor in errors: "initializer 'conv1.weight'".
absl::StatusOr<std::shared_ptr<const Constant>> ImportTensor(
    const onnx::TensorProto& tensor, const std::string& what);

}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_IMPORT_TENSOR_IMPORT_H_
