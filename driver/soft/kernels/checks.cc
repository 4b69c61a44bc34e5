// See checks.h.

#include "driver/soft/kernels/checks.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace rknnd::soft {

absl::Status CheckArity(const NodeView& node, Arity arity) {
  const size_t inputs = node.input_count();
  if (inputs < arity.min_inputs || inputs > arity.max_inputs) {
    return node.Error(absl::StrCat("has ", inputs, " inputs"));
  }
  for (size_t i = 0; i < inputs; ++i) {
    if (!node.has_input(i)) {
      if (i < arity.min_inputs || arity.max_inputs == kAnyNumber) {
        return node.Error(absl::StrCat("input ", i, " is missing"));
      }
      continue;
    }
    if (node.shape(i).size() > kMaxRank) {
      return node.Error(absl::StrCat("input ", i, " has ", node.shape(i).size(),
                                     " axes, at most ", kMaxRank,
                                     " are supported"));
    }
  }
  const size_t outputs = node.output_count();
  if (outputs == 0 || outputs > arity.max_outputs) {
    return node.Error(absl::StrCat("has ", outputs, " outputs"));
  }
  if (node.node().outputs[0] == kNoValue) {
    return node.Error("its first output is missing");
  }
  return absl::OkStatus();
}

absl::Status CheckType(const NodeView& node, size_t i,
                       std::initializer_list<DataType> types) {
  if (!node.has_input(i)) return absl::OkStatus();
  const DataType type = node.type(i);
  if (std::find(types.begin(), types.end(), type) != types.end()) {
    return absl::OkStatus();
  }
  return node.Error(absl::StrCat(
      "input ", i, " cannot be of type ", DataTypeName(type),
      type == DataType::kFloat64 ? ": export the model with float32" : ""));
}

absl::Status CheckFloat(const NodeView& node, size_t i) {
  return CheckType(node, i, {DataType::kFloat32});
}

absl::Status CheckSameTypes(const NodeView& node) {
  for (size_t i = 1; i < node.input_count(); ++i) {
    if (node.has_input(i) && node.type(i) != node.type(0)) {
      return node.Error(absl::StrCat("inputs are of types ",
                                     DataTypeName(node.type(0)), " and ",
                                     DataTypeName(node.type(i))));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<size_t> CheckAxis(const NodeView& node, int64_t axis,
                                 size_t rank) {
  const auto end = static_cast<int64_t>(rank);
  if (axis < -end || axis >= end) {
    return node.Error(
        absl::StrCat("axis ", axis, " of a tensor of rank ", rank));
  }
  return static_cast<size_t>(axis < 0 ? axis + end : axis);
}

absl::StatusOr<std::vector<size_t>> CheckAxes(const NodeView& node,
                                              const std::vector<int64_t>& axes,
                                              size_t rank) {
  std::vector<size_t> result;
  for (const int64_t axis : axes) {
    RKNND_ASSIGN_OR_RETURN(const size_t a, CheckAxis(node, axis, rank));
    if (std::find(result.begin(), result.end(), a) != result.end()) {
      return node.Error(absl::StrCat("axis ", axis, " is given twice"));
    }
    result.push_back(a);
  }
  return result;
}

Inference Infer(const NodeView& node, std::vector<InferredOutput> outputs) {
  if (node.output_count() > outputs.size()) {
    return node.Error(absl::StrCat("has ", node.output_count(), " outputs"));
  }
  outputs.resize(node.output_count());
  for (const InferredOutput& output : outputs) {
    if (output.shape.size() > kMaxRank) {
      return node.Error(absl::StrCat("its output has ", output.shape.size(),
                                     " axes, at most ", kMaxRank,
                                     " are supported"));
    }
    for (const int64_t dim : output.shape) {
      if (dim < 0) {
        return node.Error(
            absl::StrCat("its output would be ", ShapeText(output.shape)));
      }
    }
    const absl::StatusOr<int64_t> count = ElementCount(output.shape);
    if (!count.ok()) {
      return base::Annotate(
          count.status(),
          absl::StrCat(node.node().type, " '", node.node().name, "'"));
    }
  }
  return outputs;
}

Inference InferOne(const NodeView& node, DataType type, const Shape& shape) {
  return Infer(node, {{type, shape}});
}

absl::StatusOr<Shape> BroadcastShape(const NodeView& node, const Shape& a,
                                     const Shape& b) {
  const Shape& longer = a.size() >= b.size() ? a : b;
  const Shape& shorter = a.size() >= b.size() ? b : a;
  Shape result = longer;
  const size_t ahead = longer.size() - shorter.size();
  for (size_t i = 0; i < shorter.size(); ++i) {
    int64_t& dim = result[ahead + i];
    if (dim == shorter[i] || shorter[i] == 1) continue;
    if (dim != 1) {
      return node.Error(absl::StrCat("shapes ", ShapeText(a), " and ",
                                     ShapeText(b), " do not broadcast"));
    }
    dim = shorter[i];
  }
  return result;
}

absl::StatusOr<DataType> TypeFromOnnx(const NodeView& node, int64_t onnx_type) {
  switch (onnx_type) {
    case 1:   // FLOAT
    case 10:  // FLOAT16
    case 16:  // BFLOAT16
      return DataType::kFloat32;
    case 11:  // DOUBLE
      return DataType::kFloat64;
    case 2:
      return DataType::kUint8;
    case 3:
      return DataType::kInt8;
    case 4:
      return DataType::kUint16;
    case 5:
      return DataType::kInt16;
    case 6:
      return DataType::kInt32;
    case 7:
      return DataType::kInt64;
    case 9:
      return DataType::kBool;
    case 12:
      return DataType::kUint32;
    case 13:
      return DataType::kUint64;
    default:
      return node.Error(
          absl::StrCat("element type ", onnx_type, " is not supported"));
  }
}

const float* ConstantFloats(const NodeView& node, size_t i) {
  const Constant* constant = node.constant(i);
  if (constant == nullptr || constant->type != DataType::kFloat32) {
    return nullptr;
  }
  return constant->as<float>();
}

bool IsBlockable(const NodeView& node, size_t i) {
  if (!node.has_input(i) || node.type(i) != DataType::kFloat32) return false;
  const Shape& shape = node.shape(i);
  return shape.size() >= 3 && shape.size() <= 5 &&
         ProductOf(shape, 0, shape.size()) > 1;
}

int64_t ProductOf(const Shape& shape, size_t begin, size_t end) {
  int64_t product = 1;
  for (size_t i = begin; i < end; ++i) product *= shape[i];
  return product;
}

}  // namespace rknnd::soft
