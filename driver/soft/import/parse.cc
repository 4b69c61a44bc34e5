#include "driver/soft/import/parse.h"

#include <climits>

#include "absl/strings/str_cat.h"
#include "base/status/status.h"
#include "driver/soft/import/sniff.h"

namespace rknnd::soft {

absl::Status ParseOnnx(std::span<const std::byte> bytes,
                       const std::string& name, onnx::ModelProto* model) {
  RKNND_RETURN_IF_ERROR(CheckIsOnnx(bytes, name));
  if (bytes.size() > INT_MAX) {
    return absl::ResourceExhaustedError(
        absl::StrCat("model '", name, "' has ", bytes.size(),
                     " bytes, more than the 2 GiB an ONNX file can have"));
  }
  if (!model->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", name, "' is not an ONNX model, or a damaged one"));
  }
  if (!model->has_graph() ||
      (model->graph().node_size() == 0 && model->graph().output_size() == 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", name, "' is not an ONNX model: it has no graph"));
  }
  return absl::OkStatus();
}

}  // namespace rknnd::soft
