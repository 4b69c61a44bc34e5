// ValueInfoProto: what a file says of the type and shape of an input, an output
// or a value between nodes.

#ifndef DRIVER_SOFT_IMPORT_VALUE_INFO_H_
#define DRIVER_SOFT_IMPORT_VALUE_INFO_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "driver/soft/graph/graph.h"

namespace onnx {
class ValueInfoProto;
}  // namespace onnx

namespace rknnd::soft {

// Type and shape as far as the file knows them; `open` says what it does not.
// The first dim is the batch: unknown, it is one. `what` names the value in
// errors: "input 'image'".
absl::Status DeclareTensor(const onnx::ValueInfoProto& info,
                           const std::string& what, Value* value,
                           int32_t* onnx_type, std::string* open);

// The dims of the file, -1 where it gives no number.
std::optional<Shape> DeclaredDims(const onnx::ValueInfoProto& info);

}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_IMPORT_VALUE_INFO_H_
