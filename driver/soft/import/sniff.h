// What a model file is, told from its first bytes, so that the wrong file gets
// an answer that helps. Called before anything is parsed; trusts nothing.

#ifndef DRIVER_SOFT_IMPORT_SNIFF_H_
#define DRIVER_SOFT_IMPORT_SNIFF_H_

#include <cstddef>
#include <span>
#include <string>

#include "absl/status/status.h"

namespace rknnd::soft {

// OK when `bytes` may be an ONNX model; else what they look like instead, or
// that they end too early. `name` is the file as its owner knows it.
absl::Status CheckIsOnnx(std::span<const std::byte> bytes,
                         const std::string& name);

}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_IMPORT_SNIFF_H_
