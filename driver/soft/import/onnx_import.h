// ONNX bytes -> Graph. The bytes come from a client and are not trusted: every
// size is checked before it is allocated, every name before it is used, and
// every error names the node or value and the model.
//
// Called by the soft device when a model is loaded. Knows no operator but the
// ones that are not computations: Constant, and those that hold graphs.

#ifndef DRIVER_SOFT_IMPORT_ONNX_IMPORT_H_
#define DRIVER_SOFT_IMPORT_ONNX_IMPORT_H_

#include <cstddef>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "driver/soft/graph/graph.h"

namespace rknnd::soft {

// Inputs of one node, at most.
inline constexpr int kMaxArity = 4096;
// Inputs or outputs of a network: what a message to a client has room for.
inline constexpr int kMaxPorts = 1024;

// All inputs have a shape; a first dimension that is left open, the batch, is
// one.
absl::StatusOr<Graph> ImportOnnx(std::span<const std::byte> bytes,
                                 const std::string& name);
// The same but for inputs whose shape the file leaves open: their values have
// none yet (import/shapes.h gives it). What the file lacks of its weights is
// taken from `weights_of`, another model's file; empty: there is none.
absl::StatusOr<Graph> ImportOpen(std::span<const std::byte> bytes,
                                 const std::string& name,
                                 std::span<const std::byte> weights_of = {});

// Whether the operators of this domain are ONNX's own.
bool IsStandardDomain(const std::string& domain);

}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_IMPORT_ONNX_IMPORT_H_
