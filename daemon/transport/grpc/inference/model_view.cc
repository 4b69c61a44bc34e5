#include "daemon/transport/grpc/inference/model_view.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status/status.h"
#include "base/values/overflow.h"
#include "daemon/core/terms/utf8.h"

namespace rknnd::transport {
namespace {

using driver::TensorAttr;
using driver::TensorLayout;
using driver::TensorType;

// The C API shows images channels last, whatever the file has.
std::vector<int64_t> FileShape(const TensorAttr& attr) {
  std::vector<int64_t> shape(attr.dims.begin(), attr.dims.end());
  if (attr.layout == TensorLayout::kNhwc && shape.size() == 4) {
    shape = {shape[0], shape[3], shape[1], shape[2]};
  }
  return shape;
}

// What rknn_inputs_set converts (the vendor's table 5-3).
std::vector<Datatype> Accepted(const TensorAttr& attr, Datatype own) {
  std::vector<Datatype> accepted = {own};
  const auto add = [&](Datatype other) {
    if (other != own) accepted.push_back(other);
  };
  if (attr.type == TensorType::kFloat16) {
    add(Datatype::kFp32);
    add(Datatype::kFp16);
    add(Datatype::kUint8);
  } else if (attr.type == TensorType::kInt8) {
    add(Datatype::kFp32);
    add(Datatype::kInt8);
    add(Datatype::kUint8);
  }
  return accepted;
}

absl::StatusOr<TensorView> MakeTensor(const char* word, const TensorAttr& attr,
                                      bool input) {
  const std::optional<Datatype> datatype = DatatypeOf(attr.file_type);
  if (!datatype.has_value() || attr.type == TensorType::kInt4) {
    return absl::UnimplementedError(absl::StrCat(
        word, " '", attr.name, "' is ", driver::TensorTypeName(attr.file_type),
        ", for which the Open Inference Protocol has no datatype"));
  }
  TensorView view;
  view.name = core::Utf8(attr.name);
  view.datatype = *datatype;
  view.accepted =
      input ? Accepted(attr, *datatype) : std::vector<Datatype>{*datatype};
  view.shape = FileShape(attr);
  view.layout = attr.layout == TensorLayout::kUndefined
                    ? TensorLayout::kUndefined
                    : TensorLayout::kNchw;
  view.is_image = attr.layout == TensorLayout::kNhwc;
  return view;
}

void NoteDifferences(const std::vector<int64_t>& other,
                     std::vector<int64_t>& shape) {
  for (size_t i = 0; i < shape.size() && i < other.size(); ++i) {
    if (shape[i] != other[i]) shape[i] = -1;
  }
}

}  // namespace

std::optional<uint64_t> CountElements(const std::vector<int64_t>& shape) {
  uint64_t elements = 1;
  for (const int64_t dim : shape) {
    if (dim < 0) return std::nullopt;
    const auto product =
        base::CheckedMultiply(elements, static_cast<uint64_t>(dim));
    if (!product) return std::nullopt;
    elements = *product;
  }
  return elements;
}

std::string ShapeText(const std::vector<int64_t>& shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ","), "]");
}

absl::StatusOr<ModelView> MakeModelView(const core::ModelId& id,
                                        const driver::ModelInfo& info) {
  RKNND_RETURN_IF_ERROR(info.runnable);
  ModelView view;
  view.id = id;
  view.graph = core::Utf8(info.name);
  view.weight_bytes = info.weight_size;
  view.custom_string = core::Utf8(info.custom_string);
  view.target_platform = core::Utf8(info.target_platform);
  for (const TensorAttr& attr : info.programs.front().inputs) {
    RKNND_ASSIGN_OR_RETURN(TensorView made, MakeTensor("input", attr, true));
    view.inputs.push_back(std::move(made));
  }
  for (const TensorAttr& attr : info.programs.front().outputs) {
    RKNND_ASSIGN_OR_RETURN(TensorView made, MakeTensor("output", attr, false));
    view.outputs.push_back(std::move(made));
  }
  for (const driver::ProgramInfo& program : info.programs) {
    RowView& row = view.rows.emplace_back();
    for (size_t i = 0; i < program.inputs.size(); ++i) {
      const TensorAttr& attr = program.inputs[i];
      row.inputs.push_back(FileShape(attr));
      row.choice.push_back({attr.dims, attr.layout});
      NoteDifferences(row.inputs.back(), view.inputs[i].shape);
    }
    for (size_t i = 0; i < program.outputs.size(); ++i) {
      row.outputs.push_back(FileShape(program.outputs[i]));
      NoteDifferences(row.outputs.back(), view.outputs[i].shape);
    }
  }
  return view;
}

}  // namespace rknnd::transport
