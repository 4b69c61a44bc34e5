// Compiled models (.rknn and their kin), which the software NPU cannot run:
// what it says to whoever gives it one. Called before anything is parsed as
// ONNX, with a client's bytes.

#ifndef DRIVER_SOFT_IMPORT_RKNN_H_
#define DRIVER_SOFT_IMPORT_RKNN_H_

#include <cstddef>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "driver/device.h"

namespace rknnd::soft {

// By its first bytes, damaged or not.
bool IsCompiled(std::span<const std::byte> bytes);

// Why such a file cannot run here: what it is, for which SoC, with which
// inputs, and that the ONNX model is needed.
absl::Status WhyCompiledCannotRun(std::span<const std::byte> bytes,
                                  const std::string& name);

// What it says about itself, as a model that answers queries and runs no job.
// INVALID_ARGUMENT when it cannot be read.
absl::StatusOr<driver::ModelInfo> DescribeCompiled(
    std::span<const std::byte> bytes, const std::string& name);

}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_IMPORT_RKNN_H_
