#include "driver/soft/plan/npu_view.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "absl/strings/str_join.h"

namespace rknnd::soft {
namespace {

// C2 of NC1HWC2, 0 for what the NPU does not keep so.
uint32_t BlockOf(DataType type, const PlanOptions& soc) {
  switch (type) {
    case DataType::kFloat32:
      return soc.half_block;
    case DataType::kInt8:
    case DataType::kUint8:
      return soc.int8_block;
    case DataType::kInt16:
    case DataType::kUint16:
      return soc.int16_block;
    default:
      return 0;
  }
}

}  // namespace

const char* NpuTypeName(DataType type) {
  switch (type) {
    case DataType::kFloat32:
      return "FLOAT16";
    case DataType::kInt8:
    case DataType::kUint8:
      return "INT8";
    case DataType::kInt16:
    case DataType::kUint16:
      return "INT16";
    case DataType::kInt32:
    case DataType::kUint32:
      return "INT32";
    case DataType::kInt64:
    case DataType::kUint64:
      return "INT64";
    case DataType::kBool:
      return "BOOL";
    case DataType::kFloat64:
      return "FLOAT64";
  }
  return "UNKNOWN";
}

bool RunsOnCpu(const Node& node, DataType type) {
  if (type != DataType::kFloat32 && SizeOf(type) > 2) return true;
  if (type == DataType::kBool) return true;
  static constexpr std::array<std::string_view, 17> kCpu = {
      "ArgMax",          "ArgMin",         "ReduceMax",
      "ReduceMin",       "TopK",           "NonZero",
      "OneHot",          "GatherND",       "ScatterND",
      "CumSum",          "GatherElements", "Softmax",
      "ScatterElements", "LogSoftmax",     "NonMaxSuppression",
      "Range",           "Where"};
  return std::find(kCpu.begin(), kCpu.end(), node.type) != kCpu.end();
}

Shape NativeShape(const Shape& shape, DataType type, const PlanOptions& soc) {
  const auto block = static_cast<int64_t>(BlockOf(type, soc));
  if (shape.size() != 4 || block == 0) return shape;
  return {shape[0], (shape[1] + block - 1) / block, shape[2], shape[3], block};
}

std::string CommaShape(const Shape& shape) { return absl::StrJoin(shape, ","); }

}  // namespace rknnd::soft
