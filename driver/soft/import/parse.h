// The bytes of a model file as protobuf's message. Used inside this folder
// only, by .cc files: the message's type stays here.

#ifndef DRIVER_SOFT_IMPORT_PARSE_H_
#define DRIVER_SOFT_IMPORT_PARSE_H_

#include <onnx/onnx_pb.h>

#include <cstddef>
#include <span>
#include <string>

#include "absl/status/status.h"

namespace rknnd::soft {

// Into `model`. The bytes come from a client; errors name the file `name`.
absl::Status ParseOnnx(std::span<const std::byte> bytes,
                       const std::string& name, onnx::ModelProto* model);

}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_IMPORT_PARSE_H_
