// Sizes, names and bounds of graph.h.

#include "driver/soft/graph/graph.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace rknnd::soft {

size_t SizeOf(DataType type) {
  switch (type) {
    case DataType::kInt8:
    case DataType::kUint8:
    case DataType::kBool:
      return 1;
    case DataType::kInt16:
    case DataType::kUint16:
      return 2;
    case DataType::kFloat32:
    case DataType::kInt32:
    case DataType::kUint32:
      return 4;
    case DataType::kFloat64:
    case DataType::kInt64:
    case DataType::kUint64:
      return 8;
  }
  return 1;
}

const char* DataTypeName(DataType type) {
  switch (type) {
    case DataType::kFloat32:
      return "float32";
    case DataType::kInt8:
      return "int8";
    case DataType::kUint8:
      return "uint8";
    case DataType::kInt16:
      return "int16";
    case DataType::kUint16:
      return "uint16";
    case DataType::kInt32:
      return "int32";
    case DataType::kUint32:
      return "uint32";
    case DataType::kInt64:
      return "int64";
    case DataType::kUint64:
      return "uint64";
    case DataType::kBool:
      return "bool";
    case DataType::kFloat64:
      return "float64";
  }
  return "unknown";
}

absl::StatusOr<int64_t> ElementCount(const Shape& shape) {
  int64_t count = 1;
  bool empty = false;
  for (int64_t dim : shape) {
    if (dim < 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "shape ", ShapeText(shape), " has a negative dimension"));
    }
    if (dim == 0) {
      empty = true;
      continue;
    }
    // In elements of four bytes, the usual ones. It holds for the other dims of
    // an empty tensor too, so that strides cannot overflow either.
    if (__builtin_mul_overflow(count, dim, &count) ||
        count > kMaxTensorBytes / 4) {
      return absl::ResourceExhaustedError(
          absl::StrCat("shape ", ShapeText(shape), " exceeds the ",
                       kMaxTensorBytes >> 20, " MiB that one tensor may have"));
    }
  }
  return empty ? 0 : count;
}

std::string ShapeText(const Shape& shape) {
  if (shape.empty()) return "scalar";
  return absl::StrJoin(shape, "x");
}

int64_t Constant::elements() const {
  int64_t count = 1;
  for (int64_t dim : shape) count *= dim;
  return count;
}

}  // namespace rknnd::soft
