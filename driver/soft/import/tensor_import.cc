#include "driver/soft/import/tensor_import.h"

#include <onnx/onnx_pb.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status/status.h"
#include "base/values/half.h"

namespace rknnd::soft {
namespace {

using onnx::TensorProto;

// The files are little-endian, and so is every board.
static_assert(std::endian::native == std::endian::little);

// Bytes of one element as it is stored in raw_data.
size_t StoredSize(int32_t type) {
  switch (type) {
    case TensorProto::FLOAT16:
    case TensorProto::BFLOAT16:
      return 2;
    default:
      return SizeOf(*InnerType(type));
  }
}

// Reads element i of raw bytes, which are not aligned.
template <class T>
T Raw(const std::string& raw, size_t i) {
  T value;
  std::memcpy(&value, raw.data() + i * sizeof(T), sizeof(T));
  return value;
}

float Widen(uint16_t bits, int32_t type) {
  if (type == TensorProto::FLOAT16) return base::HalfToFloat(bits);
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

void FillFromRaw(const TensorProto& tensor, size_t count, std::byte* to) {
  const std::string& raw = tensor.raw_data();
  auto* floats = reinterpret_cast<float*>(to);
  switch (tensor.data_type()) {
    case TensorProto::FLOAT16:
    case TensorProto::BFLOAT16:
      for (size_t i = 0; i < count; ++i) {
        floats[i] = Widen(Raw<uint16_t>(raw, i), tensor.data_type());
      }
      return;
    case TensorProto::BOOL:
      // Any bit pattern may be there; a bool of ours is 0 or 1.
      for (size_t i = 0; i < count; ++i) {
        to[i] = std::byte{raw[i] != 0};
      }
      return;
    default:
      // An empty tensor has no address.
      if (!raw.empty()) std::memcpy(to, raw.data(), raw.size());
  }
}

template <class T, class Field>
void Narrow(const Field& field, std::byte* to) {
  auto* out = reinterpret_cast<T*>(to);
  for (int i = 0; i < field.size(); ++i) out[i] = static_cast<T>(field[i]);
}

// The number of elements in the typed field that this type uses.
int TypedCount(const TensorProto& tensor) {
  switch (tensor.data_type()) {
    case TensorProto::FLOAT:
      return tensor.float_data_size();
    case TensorProto::DOUBLE:
      return tensor.double_data_size();
    case TensorProto::INT64:
      return tensor.int64_data_size();
    case TensorProto::UINT32:
    case TensorProto::UINT64:
      return tensor.uint64_data_size();
    default:
      return tensor.int32_data_size();
  }
}

void FillFromTyped(const TensorProto& tensor, std::byte* to) {
  auto* floats = reinterpret_cast<float*>(to);
  switch (tensor.data_type()) {
    case TensorProto::FLOAT:
      return Narrow<float>(tensor.float_data(), to);
    case TensorProto::DOUBLE:
      return Narrow<double>(tensor.double_data(), to);
    case TensorProto::INT64:
      return Narrow<int64_t>(tensor.int64_data(), to);
    case TensorProto::UINT32:
      return Narrow<uint32_t>(tensor.uint64_data(), to);
    case TensorProto::UINT64:
      return Narrow<uint64_t>(tensor.uint64_data(), to);
    case TensorProto::FLOAT16:
    case TensorProto::BFLOAT16:
      for (int i = 0; i < tensor.int32_data_size(); ++i) {
        floats[i] = Widen(static_cast<uint16_t>(tensor.int32_data(i)),
                          tensor.data_type());
      }
      return;
    case TensorProto::BOOL:
      for (int i = 0; i < tensor.int32_data_size(); ++i) {
        to[i] = std::byte{tensor.int32_data(i) != 0};
      }
      return;
    case TensorProto::INT8:
      return Narrow<int8_t>(tensor.int32_data(), to);
    case TensorProto::UINT8:
      return Narrow<uint8_t>(tensor.int32_data(), to);
    case TensorProto::INT16:
      return Narrow<int16_t>(tensor.int32_data(), to);
    case TensorProto::UINT16:
      return Narrow<uint16_t>(tensor.int32_data(), to);
    default:
      return Narrow<int32_t>(tensor.int32_data(), to);
  }
}

}  // namespace

std::optional<DataType> InnerType(int32_t onnx_type) {
  switch (onnx_type) {
    case TensorProto::FLOAT:
    case TensorProto::FLOAT16:
    case TensorProto::BFLOAT16:
      return DataType::kFloat32;
    case TensorProto::DOUBLE:
      return DataType::kFloat64;
    case TensorProto::INT8:
      return DataType::kInt8;
    case TensorProto::UINT8:
      return DataType::kUint8;
    case TensorProto::INT16:
      return DataType::kInt16;
    case TensorProto::UINT16:
      return DataType::kUint16;
    case TensorProto::INT32:
      return DataType::kInt32;
    case TensorProto::UINT32:
      return DataType::kUint32;
    case TensorProto::INT64:
      return DataType::kInt64;
    case TensorProto::UINT64:
      return DataType::kUint64;
    case TensorProto::BOOL:
      return DataType::kBool;
    default:
      return std::nullopt;
  }
}

std::string OnnxTypeName(int32_t onnx_type) {
  if (TensorProto::DataType_IsValid(onnx_type)) {
    return TensorProto::DataType_Name(
        static_cast<TensorProto::DataType>(onnx_type));
  }
  return absl::StrCat("number ", onnx_type);
}

bool LacksData(const TensorProto& tensor) {
  if (!InnerType(tensor.data_type()).has_value() || tensor.has_segment() ||
      tensor.data_location() == TensorProto::EXTERNAL ||
      tensor.external_data_size() > 0) {
    return false;
  }
  return tensor.raw_data().empty() && TypedCount(tensor) == 0 &&
         std::find(tensor.dims().begin(), tensor.dims().end(), 0) ==
             tensor.dims().end();
}

absl::StatusOr<std::shared_ptr<const Constant>> ImportTensor(
    const TensorProto& tensor, const std::string& what) {
  std::optional<DataType> type = InnerType(tensor.data_type());
  if (!type.has_value()) {
    return absl::UnimplementedError(absl::StrCat(
        what, " has element type ", OnnxTypeName(tensor.data_type()),
        ", which the software NPU does not have"));
  }
  if (tensor.data_location() == TensorProto::EXTERNAL ||
      tensor.external_data_size() > 0) {
    std::string file = "another file";
    for (const auto& entry : tensor.external_data()) {
      if (entry.key() == "location")
        file = absl::StrCat("'", entry.value(), "'");
    }
    return absl::UnimplementedError(
        absl::StrCat(what, " keeps its data in ", file,
                     "; only the model file itself is read: save the model "
                     "with its data inside"));
  }
  if (tensor.has_segment()) {
    return absl::UnimplementedError(
        absl::StrCat(what, " is stored in segments: save it whole"));
  }
  auto constant = std::make_shared<Constant>();
  constant->type = *type;
  constant->shape.assign(tensor.dims().begin(), tensor.dims().end());
  absl::StatusOr<int64_t> elements = ElementCount(constant->shape);
  if (!elements.ok()) return base::Annotate(elements.status(), what);
  auto count = static_cast<uint64_t>(*elements);

  bool raw = tensor.has_raw_data();
  size_t stored = StoredSize(tensor.data_type());
  uint64_t there = raw ? tensor.raw_data().size()
                       : static_cast<uint64_t>(TypedCount(tensor));
  uint64_t wanted = raw ? count * stored : count;
  if (there != wanted) {
    return absl::InvalidArgumentError(absl::StrCat(
        what, " of shape ", ShapeText(constant->shape), " holds ", there,
        raw ? " bytes" : " elements", " where ", wanted, " belong"));
  }
  constant->data.resize(count * SizeOf(*type));
  if (raw) {
    FillFromRaw(tensor, count, constant->data.data());
  } else {
    FillFromTyped(tensor, constant->data.data());
  }
  return constant;
}

}  // namespace rknnd::soft
