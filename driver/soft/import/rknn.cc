#include "driver/soft/import/rknn.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "base/status/status.h"
#include "driver/rknn_file/rknn_file.h"

namespace rknnd::soft {
namespace {

// Enough to recognise a model by.
constexpr size_t kNamedPorts = 4;

// What a damaged file still says: the JSON at its end holds
// "target_platform":["rk3588"].
std::string TargetInJson(absl::string_view text) {
  constexpr absl::string_view kKey = "\"target_platform\"";
  size_t at = text.rfind(kKey);
  if (at == absl::string_view::npos) return "";
  std::string target;
  for (char c : text.substr(at + kKey.size(), 64)) {
    if (c == ']' || c == '}' || target.size() > 20) break;
    if (absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == ',') {
      target += c;
    }
  }
  return target;
}

std::string Ports(const char* one,
                  const std::vector<rknn_file::Tensor>& ports) {
  std::string text = absl::StrCat(one, ports.size() == 1 ? " " : "s ");
  for (size_t i = 0; i < std::min(ports.size(), kNamedPorts); ++i) {
    absl::StrAppend(&text, i == 0 ? "'" : ", '", ports[i].name, "' ",
                    absl::StrJoin(ports[i].dims, "x"), " ", ports[i].type_name);
  }
  if (ports.size() > kNamedPorts) {
    absl::StrAppend(&text, " and ", ports.size() - kNamedPorts, " more");
  }
  return text;
}

absl::Status CannotRun(const std::string& name, const std::string& target,
                       const std::string& more) {
  return absl::InvalidArgumentError(absl::StrCat(
      "'", name, "' is compiled for ",
      target.empty() ? "a Rockchip NPU" : target,
      " and cannot run on the software NPU; give the ONNX model (same API). ",
      more));
}

absl::Status WhyReadCannotRun(const std::string& name,
                              const rknn_file::Description& file) {
  return CannotRun(
      name, file.target_platform,
      absl::StrCat("It was made by toolkit ", file.toolkit_version, " from ",
                   file.framework, " and has ", Ports("input", file.inputs),
                   ", ", Ports("output", file.outputs)));
}

// As rknn_query shows it: pictures with their channels last.
absl::StatusOr<driver::TensorAttr> ToAttr(const rknn_file::Tensor& port) {
  driver::TensorAttr attr;
  attr.name = port.name;
  attr.dims = port.dims;
  if (attr.dims.empty()) attr.dims = {1};
  // A type that nobody knows has at least a byte an element.
  attr.type = port.type < driver::kTensorTypeCount
                  ? static_cast<driver::TensorType>(port.type)
                  : driver::TensorType::kInt8;
  if (attr.dims.size() == 4) {
    attr.layout = driver::TensorLayout::kNchw;
    if (port.layout == "NHWC") {
      attr.layout = driver::TensorLayout::kNhwc;
      attr.dims = {attr.dims[0], attr.dims[2], attr.dims[3], attr.dims[1]};
      attr.w_stride = attr.dims[2];
    }
  }
  attr.quantization = port.quantized ? driver::Quantization::kAffine
                                     : driver::Quantization::kNone;
  attr.scale = port.scale;
  attr.zero_point = port.zero_point;
  attr.elements = 1;
  for (const uint32_t dim : attr.dims) {
    if (__builtin_mul_overflow(attr.elements, uint64_t{dim}, &attr.elements)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "tensor '", port.name, "' of ", absl::StrJoin(port.dims, "x"),
          " elements is larger than any memory"));
    }
  }
  if (__builtin_mul_overflow(attr.elements, driver::ElementSize(attr.type),
                             &attr.size)) {
    return absl::InvalidArgumentError(
        absl::StrCat("tensor '", port.name, "' is larger than any memory"));
  }
  attr.size_with_stride = std::max(attr.size, port.native_bytes);
  return attr;
}

driver::TensorAttr ToNative(driver::TensorAttr attr,
                            const rknn_file::Tensor& port) {
  constexpr size_t kBlockedDims = 5;
  if (!port.native_blocked || port.native_dims.size() != kBlockedDims) {
    return attr;
  }
  attr.layout = driver::TensorLayout::kNc1hwc2;
  attr.dims = port.native_dims;
  attr.w_stride = 0;
  return attr;
}

absl::Status AddPorts(const std::vector<rknn_file::Tensor>& ports,
                      std::vector<driver::TensorAttr>* attrs,
                      std::vector<driver::TensorAttr>* natives) {
  for (const rknn_file::Tensor& port : ports) {
    RKNND_ASSIGN_OR_RETURN(driver::TensorAttr attr, ToAttr(port));
    natives->push_back(ToNative(attr, port));
    attrs->push_back(std::move(attr));
  }
  return absl::OkStatus();
}

}  // namespace

bool IsCompiled(std::span<const std::byte> bytes) {
  return rknn_file::KindOf(bytes) != rknn_file::Kind::kOther;
}

absl::Status WhyCompiledCannotRun(std::span<const std::byte> bytes,
                                  const std::string& name) {
  const rknn_file::Kind kind = rknn_file::KindOf(bytes);
  if (kind != rknn_file::Kind::kRknn) {
    return absl::InvalidArgumentError(absl::StrCat(
        "'", name, "' is ", rknn_file::KindName(kind),
        " and cannot run on the software NPU; give the ONNX model (same API)"));
  }
  const auto file = rknn_file::Read(bytes);
  if (!file.ok()) {
    return CannotRun(name,
                     TargetInJson({reinterpret_cast<const char*>(bytes.data()),
                                   bytes.size()}),
                     absl::StrCat("Besides, ", file.error().message));
  }
  return WhyReadCannotRun(name, *file);
}

absl::StatusOr<driver::ModelInfo> DescribeCompiled(
    std::span<const std::byte> bytes, const std::string& name) {
  const auto file = rknn_file::Read(bytes);
  if (!file.ok()) return WhyCompiledCannotRun(bytes, name);
  driver::ModelInfo info;
  info.name = name;
  info.weight_size = file->weight_bytes;
  info.target_platform = file->target_platform;
  info.runnable = WhyReadCannotRun(name, *file);
  driver::ProgramInfo program;
  program.internal_size = file->internal_bytes;
  absl::Status ports =
      AddPorts(file->inputs, &program.inputs, &program.native_inputs);
  ports.Update(
      AddPorts(file->outputs, &program.outputs, &program.native_outputs));
  if (!ports.ok()) {
    return CannotRun(name, file->target_platform, std::string(ports.message()));
  }
  info.programs.push_back(std::move(program));
  return info;
}

}  // namespace rknnd::soft
