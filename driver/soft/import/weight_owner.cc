#include "driver/soft/import/weight_owner.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status/status.h"
#include "driver/soft/import/parse.h"
#include "driver/soft/import/tensor_import.h"

namespace rknnd::soft {
namespace {

// For messages: its file's name is not known here.
constexpr char kName[] = "the model whose weights are shared";

std::string Described(int32_t onnx_type, const Shape& shape) {
  return absl::StrCat(OnnxTypeName(onnx_type), " ", ShapeText(shape));
}

}  // namespace

WeightOwner::WeightOwner(std::unique_ptr<onnx::ModelProto> model)
    : model_(std::move(model)) {
  if (model_ == nullptr) return;
  for (const auto& tensor : model_->graph().initializer()) {
    weights_.emplace(tensor.name(), &tensor);
  }
  for (const auto& node : model_->graph().node()) {
    if (node.op_type() != "Constant" || node.output_size() != 1) continue;
    for (const auto& attribute : node.attribute()) {
      if (attribute.name() != "value" || !attribute.has_t()) continue;
      weights_.emplace(node.output(0), &attribute.t());
    }
  }
}

WeightOwner::WeightOwner(WeightOwner&&) noexcept = default;
WeightOwner& WeightOwner::operator=(WeightOwner&&) noexcept = default;
WeightOwner::~WeightOwner() = default;

absl::StatusOr<WeightOwner> WeightOwner::Read(
    std::span<const std::byte> bytes) {
  if (bytes.empty()) return WeightOwner(nullptr);
  auto model = std::make_unique<onnx::ModelProto>();
  RKNND_RETURN_IF_ERROR(ParseOnnx(bytes, kName, model.get()));
  return WeightOwner(std::move(model));
}

absl::StatusOr<std::shared_ptr<const Constant>> WeightOwner::Take(
    const Wanted& wanted) const {
  const std::string& what = wanted.what;
  if (model_ == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(
        what,
        " has no data: its weights were removed. Load it with "
        "RKNN_FLAG_SHARE_WEIGHT_MEM and, in rknn_init_extend, the context of "
        "the model that has them"));
  }
  const auto found = weights_.find(wanted.name);
  if (found == weights_.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, " has no data, and ", kName,
                     " has no weight of that name: give the context of the "
                     "model it was made from"));
  }
  const onnx::TensorProto& tensor = *found->second;
  const Shape shape(tensor.dims().begin(), tensor.dims().end());
  const int32_t type = wanted.onnx_type;
  if ((type != 0 && type != tensor.data_type()) ||
      (wanted.shape != nullptr && *wanted.shape != shape)) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, " is ",
                     Described(type != 0 ? type : tensor.data_type(),
                               wanted.shape != nullptr ? *wanted.shape : shape),
                     ", but ", Described(tensor.data_type(), shape), " in ",
                     kName, ": they are not the same network"));
  }
  if (LacksData(tensor)) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, " has no data, nor has it in ", kName,
                     ": give the context of the model that has the weights"));
  }
  return ImportTensor(tensor, absl::StrCat("'", wanted.name, "' in ", kName));
}

}  // namespace rknnd::soft
