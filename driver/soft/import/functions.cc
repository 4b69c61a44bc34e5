// See functions.h.

#include "driver/soft/import/functions.h"

#include <google/protobuf/unknown_field_set.h>
#include <onnx/onnx_pb.h>

#include "absl/strings/str_cat.h"
#include "driver/soft/import/onnx_import.h"

namespace rknnd::soft {

absl::StatusOr<Functions> Functions::Of(const onnx::ModelProto& model) {
  Functions all;
  for (const onnx::FunctionProto& function : model.functions()) {
    const std::string domain =
        IsStandardDomain(function.domain()) ? "" : function.domain();
    if (!all.functions_.emplace(std::pair(domain, function.name()), &function)
             .second) {
      return absl::InvalidArgumentError(
          absl::StrCat("has function '", domain, "::", function.name(),
                       "' twice; overloads are not supported"));
    }
  }
  return all;
}

const onnx::FunctionProto* Functions::Find(const std::string& domain,
                                           const std::string& type) const {
  const auto found = functions_.find(std::pair(domain, type));
  return found == functions_.end() ? nullptr : found->second;
}

absl::StatusOr<std::vector<onnx::AttributeProto>> DefaultsOf(
    const onnx::FunctionProto& function) {
  constexpr int kAttributeProto = 11;
  std::vector<onnx::AttributeProto> defaults;
  const auto& fields = function.unknown_fields();
  for (int i = 0; i < fields.field_count(); ++i) {
    const auto& field = fields.field(i);
    if (field.number() != kAttributeProto) continue;
    defaults.emplace_back();
    if (field.type() != google::protobuf::UnknownField::TYPE_LENGTH_DELIMITED ||
        !defaults.back().ParseFromString(field.length_delimited())) {
      return absl::InvalidArgumentError(absl::StrCat(
          "function '", function.name(), "' has a damaged attribute"));
    }
  }
  return defaults;
}

}  // namespace rknnd::soft
