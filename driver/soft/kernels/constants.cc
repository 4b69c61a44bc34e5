// What depends on shapes and attributes alone: Constant, ConstantOfShape,
// Shape, Size. Folded while loading; the kernels are what folding runs.

#include <algorithm>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "driver/soft/kernels/checks.h"
#include "driver/soft/kernels/families.h"
#include "driver/soft/kernels/loops.h"

namespace rknnd::soft {
namespace {

// A kernel that writes the same bytes each time.
MadeKernel Writes(const KernelRequest& request, const void* data, size_t size) {
  if (size != request.outputs[0].bytes()) {
    return request.node.Error("its output has another size than its shape");
  }
  if (size == 0) return MakeKernel([](Inputs, Outputs, std::byte*) {});
  RKNND_ASSIGN_OR_RETURN(
      const std::byte* const kept,
      request.weights.StoreCopy({static_cast<const std::byte*>(data), size}));
  return MakeKernel([kept, size](Inputs, Outputs outputs, std::byte*) {
    std::memcpy(outputs[0], kept, size);
  });
}

// Constant: one of several attributes holds the value.
absl::StatusOr<Constant> ValueOf(const NodeView& node) {
  if (const Constant* value = node.Tensor("value"); value != nullptr) {
    return *value;
  }
  Constant constant;
  const auto fill = [&](DataType type, Shape shape, const void* data,
                        size_t size) {
    constant.type = type;
    constant.shape = std::move(shape);
    const auto* bytes = static_cast<const std::byte*>(data);
    constant.data.assign(bytes, bytes + size);
  };
  if (node.Has("value_float")) {
    const float value = node.Float("value_float", 0.0F);
    fill(DataType::kFloat32, {}, &value, sizeof(value));
  } else if (node.Has("value_int")) {
    const int64_t value = node.Int("value_int", 0);
    fill(DataType::kInt64, {}, &value, sizeof(value));
  } else if (node.Has("value_floats")) {
    const std::vector<float> values = node.Floats("value_floats");
    fill(DataType::kFloat32, {static_cast<int64_t>(values.size())},
         values.data(), values.size() * sizeof(float));
  } else if (node.Has("value_ints")) {
    const std::vector<int64_t> values = node.Ints("value_ints");
    fill(DataType::kInt64, {static_cast<int64_t>(values.size())}, values.data(),
         values.size() * sizeof(int64_t));
  } else {
    return node.Error("has no value of a supported kind");
  }
  return constant;
}

Inference InferConstant(const NodeView& node) {
  RKNND_RETURN_IF_ERROR(CheckArity(node, {0, 0}));
  RKNND_ASSIGN_OR_RETURN(const Constant value, ValueOf(node));
  return InferOne(node, value.type, value.shape);
}

MadeKernel MakeConstant(const KernelRequest& request) {
  RKNND_ASSIGN_OR_RETURN(const Constant value, ValueOf(request.node));
  return Writes(request, value.data.data(), value.data.size());
}

Inference InferConstantOfShape(const NodeView& node) {
  RKNND_RETURN_IF_ERROR(CheckArity(node, {1, 1}));
  RKNND_ASSIGN_OR_RETURN(const std::vector<int64_t> dims, node.ConstantInts(0));
  const Constant* value = node.Tensor("value");
  if (value != nullptr && value->elements() != 1) {
    return node.Error("value must have one element");
  }
  return InferOne(node, value == nullptr ? DataType::kFloat32 : value->type,
                  Shape(dims.begin(), dims.end()));
}

MadeKernel MakeConstantOfShape(const KernelRequest& request) {
  const Constant* value = request.node.Tensor("value");
  uint64_t element = 0;
  if (value != nullptr) {
    std::memcpy(&element, value->data.data(),
                std::min(sizeof(element), value->data.size()));
  }
  const int64_t count = request.outputs[0].elements();
  const StridedCopy fill({count}, {0}, {1}, SizeOf(request.outputs[0].type));
  return MakeKernel([fill, element](Inputs, Outputs outputs, std::byte*) {
    fill.Run(reinterpret_cast<const std::byte*>(&element), outputs[0]);
  });
}

// From opset 15 on a part of the shape may be asked for.
std::vector<int64_t> ShapeOf(const NodeView& node) {
  const Shape& shape = node.shape(0);
  const auto rank = static_cast<int64_t>(shape.size());
  const auto bounded = [&](int64_t at) {
    return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank);
  };
  const int64_t start = bounded(node.Int("start", 0));
  const int64_t end = bounded(node.Int("end", rank));
  if (start >= end) return {};
  return {shape.begin() + start, shape.begin() + end};
}

Inference InferShape(const NodeView& node) {
  RKNND_RETURN_IF_ERROR(CheckArity(node, {1, 1}));
  return InferOne(node, DataType::kInt64,
                  {static_cast<int64_t>(ShapeOf(node).size())});
}

MadeKernel MakeShape(const KernelRequest& request) {
  const std::vector<int64_t> shape = ShapeOf(request.node);
  return Writes(request, shape.data(), shape.size() * sizeof(int64_t));
}

Inference InferSize(const NodeView& node) {
  RKNND_RETURN_IF_ERROR(CheckArity(node, {1, 1}));
  return InferOne(node, DataType::kInt64, {});
}

MadeKernel MakeSize(const KernelRequest& request) {
  const int64_t size = request.inputs[0].elements();
  return Writes(request, &size, sizeof(size));
}

}  // namespace

void RegisterConstants(OperatorTable& table) {
  table.Add({.type = "Constant", .infer = InferConstant, .make = MakeConstant});
  table.Add({.type = "ConstantOfShape",
             .infer = InferConstantOfShape,
             .make = MakeConstantOfShape});
  table.Add({.type = "Shape", .infer = InferShape, .make = MakeShape});
  table.Add({.type = "Size", .infer = InferSize, .make = MakeSize});
}

}  // namespace rknnd::soft
