#include "daemon/transport/grpc/inference/datatype.h"

#include <algorithm>
#include <array>

namespace rknnd::transport {
namespace {

using driver::TensorType;

struct Row {
  Datatype datatype;
  const char* name;
  size_t size;
  std::optional<TensorType> device;
};

constexpr std::array<Row, 14> kRows = {{
    {Datatype::kBool, "BOOL", 1, TensorType::kBool},
    {Datatype::kUint8, "UINT8", 1, TensorType::kUint8},
    {Datatype::kUint16, "UINT16", 2, TensorType::kUint16},
    {Datatype::kUint32, "UINT32", 4, TensorType::kUint32},
    {Datatype::kUint64, "UINT64", 8, std::nullopt},
    {Datatype::kInt8, "INT8", 1, TensorType::kInt8},
    {Datatype::kInt16, "INT16", 2, TensorType::kInt16},
    {Datatype::kInt32, "INT32", 4, TensorType::kInt32},
    {Datatype::kInt64, "INT64", 8, TensorType::kInt64},
    {Datatype::kFp16, "FP16", 2, TensorType::kFloat16},
    {Datatype::kFp32, "FP32", 4, TensorType::kFloat32},
    {Datatype::kFp64, "FP64", 8, std::nullopt},
    {Datatype::kBytes, "BYTES", 0, std::nullopt},
    {Datatype::kBf16, "BF16", 2, TensorType::kBfloat16},
}};

const Row& RowOf(Datatype datatype) {
  return kRows[static_cast<size_t>(datatype) - 1];
}

}  // namespace

std::optional<Datatype> ParseDatatype(std::string_view name) {
  const auto* const row =
      std::find_if(kRows.begin(), kRows.end(),
                   [&](const Row& each) { return each.name == name; });
  if (row == kRows.end()) return std::nullopt;
  return row->datatype;
}

const char* DatatypeName(Datatype datatype) { return RowOf(datatype).name; }

size_t DatatypeSize(Datatype datatype) { return RowOf(datatype).size; }

std::optional<TensorType> DeviceType(Datatype datatype) {
  return RowOf(datatype).device;
}

std::optional<Datatype> DatatypeOf(TensorType type) {
  const auto* const row =
      std::find_if(kRows.begin(), kRows.end(),
                   [&](const Row& each) { return each.device == type; });
  if (row == kRows.end()) return std::nullopt;
  return row->datatype;
}

}  // namespace rknnd::transport
