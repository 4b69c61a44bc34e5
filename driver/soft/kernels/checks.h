// What every shape rule checks first: how many inputs and outputs, of which
// types, axes in range, output sizes that fit. Nodes come from model files.
//
// Thread: the loading thread.

#ifndef DRIVER_SOFT_KERNELS_CHECKS_H_
#define DRIVER_SOFT_KERNELS_CHECKS_H_

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/status/status.h"
#include "driver/soft/kernels/operator.h"

namespace rknnd::soft {

// Networks use at most six axes; loops keep their counters in arrays.
inline constexpr size_t kMaxRank = 8;

using Inference = absl::StatusOr<std::vector<InferredOutput>>;

struct Arity {
  size_t min_inputs = 1, max_inputs = 1;
  size_t max_outputs = 1;
};
inline constexpr size_t kAnyNumber = SIZE_MAX;

// Numbers of inputs and outputs, the first `min_inputs` and the first output
// present, no rank above kMaxRank.
absl::Status CheckArity(const NodeView& node, Arity arity);

// That input `i` has one of `types`; an input left out passes.
absl::Status CheckType(const NodeView& node, size_t i,
                       std::initializer_list<DataType> types);
absl::Status CheckFloat(const NodeView& node, size_t i);
// That the inputs that are there have all the same type.
absl::Status CheckSameTypes(const NodeView& node);

// `axis` counted from the front; an error unless -rank <= axis < rank.
absl::StatusOr<size_t> CheckAxis(const NodeView& node, int64_t axis,
                                 size_t rank);
// Several of them, each once.
absl::StatusOr<std::vector<size_t>> CheckAxes(const NodeView& node,
                                              const std::vector<int64_t>& axes,
                                              size_t rank);

// The answer of a shape rule: dims are not negative, sizes fit, and outputs
// the node does not have are dropped.
Inference Infer(const NodeView& node, std::vector<InferredOutput> outputs);
Inference InferOne(const NodeView& node, DataType type, const Shape& shape);

// The shape that numpy's broadcasting gives to `a` with `b`.
absl::StatusOr<Shape> BroadcastShape(const NodeView& node, const Shape& a,
                                     const Shape& b);

// The type a value of ONNX's TensorProto.DataType `onnx_type` has in here:
// every floating point type is float32.
absl::StatusOr<DataType> TypeFromOnnx(const NodeView& node, int64_t onnx_type);

// Contents of a float constant given as input `i`, null when it is unknown
// until run time.
const float* ConstantFloats(const NodeView& node, size_t i);

// Whether a tensor may lie blocked: floats with channels and pixels. A single
// number never does, as plan/ leaves it dense beside blocked tensors.
bool IsBlockable(const NodeView& node, size_t i);

// Product of a part of a shape; no overflow as the shape has passed Infer.
int64_t ProductOf(const Shape& shape, size_t begin, size_t end);

}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_KERNELS_CHECKS_H_
