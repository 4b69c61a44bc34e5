// See value_info.h.

#include "driver/soft/import/value_info.h"

#include <onnx/onnx_pb.h>

#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/status/status.h"
#include "driver/soft/import/tensor_import.h"

namespace rknnd::soft {

absl::Status DeclareTensor(const onnx::ValueInfoProto& info,
                           const std::string& what, Value* value,
                           int32_t* onnx_type, std::string* open) {
  if (!info.type().has_tensor_type()) {
    return absl::UnimplementedError(
        absl::StrCat(what, " is not a tensor; only tensors are supported"));
  }
  const auto& tensor = info.type().tensor_type();
  std::optional<DataType> type = InnerType(tensor.elem_type());
  if (!type.has_value()) {
    return absl::UnimplementedError(absl::StrCat(
        what, " has element type ", OnnxTypeName(tensor.elem_type()),
        ", which the software NPU does not have"));
  }
  value->type = *type;
  *onnx_type = tensor.elem_type();
  if (!tensor.has_shape()) {
    *open = " declares no shape: give it a fixed one";
    return absl::OkStatus();
  }
  Shape shape;
  for (int i = 0; i < tensor.shape().dim_size(); ++i) {
    const auto& dim = tensor.shape().dim(i);
    int64_t extent = dim.dim_value();
    if (!dim.has_dim_value() || extent < 0) {
      if (i == 0) {
        extent = 1;
      } else {
        *open =
            absl::StrCat(": dimension ", i,
                         dim.dim_param().empty()
                             ? std::string()
                             : absl::StrCat(" ('", dim.dim_param(), "')"),
                         " is not fixed: export the model with a fixed shape");
        return absl::OkStatus();
      }
    }
    shape.push_back(extent);
  }
  absl::StatusOr<int64_t> elements = ElementCount(shape);
  if (!elements.ok()) return base::Annotate(elements.status(), what);
  value->shape = std::move(shape);
  return absl::OkStatus();
}

std::optional<Shape> DeclaredDims(const onnx::ValueInfoProto& info) {
  if (!info.type().tensor_type().has_shape()) return std::nullopt;
  Shape dims;
  for (const auto& dim : info.type().tensor_type().shape().dim()) {
    dims.push_back(dim.has_dim_value() && dim.dim_value() >= 0 ? dim.dim_value()
                                                               : -1);
  }
  return dims;
}

}  // namespace rknnd::soft
