// Called on the program's threads. Attributes come from the daemon, which the
// client trusts; sizes come from the program, which may be wrong.

#include "client/rknnrt/tensor.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#include "base/values/half.h"
#include "base/values/overflow.h"
#include "proto/wire/codec.h"

namespace rknnd::client {
namespace {

using base::Code;
using base::Error;
using base::Expected;

struct TypeFacts {
  size_t size;
  const char* constant;
  // Whether rknn_inputs_set may be given it: what a size is compared with when
  // the declared type does not fit.
  bool input;
};

constexpr std::array<TypeFacts, RKNN_TENSOR_TYPE_MAX> kTypes = {{
    {4, "RKNN_TENSOR_FLOAT32", true},
    {2, "RKNN_TENSOR_FLOAT16", true},
    {1, "RKNN_TENSOR_INT8", true},
    {1, "RKNN_TENSOR_UINT8", true},
    {2, "RKNN_TENSOR_INT16", true},
    {2, "RKNN_TENSOR_UINT16", false},
    {4, "RKNN_TENSOR_INT32", true},
    {4, "RKNN_TENSOR_UINT32", false},
    {8, "RKNN_TENSOR_INT64", true},
    {1, "RKNN_TENSOR_BOOL", true},
    {0, "RKNN_TENSOR_INT4", false},
    {2, "RKNN_TENSOR_BFLOAT16", false},
}};

uint32_t Clamped(uint64_t value) {
  return static_cast<uint32_t>(
      std::min<uint64_t>(value, std::numeric_limits<uint32_t>::max()));
}

template <class Element>
void ToFloats(std::span<const std::byte> from, std::span<std::byte> to,
              float zero_point, float scale) {
  const size_t count =
      std::min(from.size() / sizeof(Element), to.size() / sizeof(float));
  for (size_t i = 0; i < count; ++i) {
    // The program's memory may be aligned to nothing.
    Element element;
    std::memcpy(&element, from.data() + i * sizeof element, sizeof element);
    const float value = (static_cast<float>(element) - zero_point) * scale;
    std::memcpy(to.data() + i * sizeof value, &value, sizeof value);
  }
}

void Copy(std::span<const std::byte> from, std::span<std::byte> to) {
  std::memcpy(to.data(), from.data(), std::min(from.size(), to.size()));
}

// float32 to half, for memory that is aligned to nothing.
void ToHalves(std::span<const std::byte> from, std::span<std::byte> to) {
  constexpr size_t kBlock = 256;
  std::array<float, kBlock> floats;
  std::array<base::Half, kBlock> halves;
  const size_t count =
      std::min(from.size() / sizeof(float), to.size() / sizeof(base::Half));
  for (size_t done = 0; done < count; done += kBlock) {
    const size_t part = std::min(kBlock, count - done);
    std::memcpy(floats.data(), from.data() + done * sizeof(float),
                part * sizeof(float));
    base::FloatToHalf(std::span(floats.data(), part),
                      std::span(halves.data(), part));
    std::memcpy(to.data() + done * sizeof(base::Half), halves.data(),
                part * sizeof(base::Half));
  }
}

bool IsFloat(uint32_t type) {
  return type == RKNN_TENSOR_FLOAT32 || type == RKNN_TENSOR_FLOAT16;
}

void ConvertToFloats(const TensorAttr& attr, std::span<const std::byte> from,
                     std::span<std::byte> to) {
  const bool affine = attr.quantization == RKNN_TENSOR_QNT_AFFINE_ASYMMETRIC;
  const float zero_point = affine ? static_cast<float>(attr.zero_point) : 0.0F;
  const float scale = affine ? attr.scale : 1.0F;
  switch (attr.type) {
    case RKNN_TENSOR_INT8:
      return ToFloats<int8_t>(from, to, zero_point, scale);
    case RKNN_TENSOR_UINT8:
      return ToFloats<uint8_t>(from, to, zero_point, scale);
    case RKNN_TENSOR_INT16:
      return ToFloats<int16_t>(from, to, zero_point, scale);
    case RKNN_TENSOR_UINT16:
      return ToFloats<uint16_t>(from, to, zero_point, scale);
    // Integers of the model's own, not codes of something else.
    case RKNN_TENSOR_INT32:
      return ToFloats<int32_t>(from, to, 0.0F, 1.0F);
    case RKNN_TENSOR_UINT32:
      return ToFloats<uint32_t>(from, to, 0.0F, 1.0F);
    case RKNN_TENSOR_INT64:
      return ToFloats<int64_t>(from, to, 0.0F, 1.0F);
    case RKNN_TENSOR_BOOL:
      return ToFloats<uint8_t>(from, to, 0.0F, 1.0F);
    default:
      return Copy(from, to);  // float32; OutputSize refuses the rest
  }
}

}  // namespace

size_t ElementSize(uint32_t type) {
  return type < kTypes.size() ? kTypes[type].size : 0;
}

const char* TypeConstant(uint32_t type) {
  return type < kTypes.size() ? kTypes[type].constant : "an unknown type";
}

std::string DimsText(const TensorAttr& attr) {
  std::string text;
  for (size_t i = 0; i < attr.dims_count; ++i) {
    if (i != 0) text += 'x';
    text += std::to_string(attr.dims[i]);
  }
  return text;
}

std::string NoSuchTensor(const char* what, uint32_t index, size_t count) {
  return std::string(what) + " index " + std::to_string(index) +
         " does not exist: the model has " + std::to_string(count);
}

void FillAttr(const TensorAttr& from, uint32_t index, rknn_tensor_attr* to) {
  *to = {};
  to->index = index;
  to->n_dims =
      static_cast<uint32_t>(std::min<size_t>(from.dims_count, RKNN_MAX_DIMS));
  std::copy_n(from.dims, to->n_dims, to->dims);
  wire::SetText(to->name, from.name);
  to->n_elems = Clamped(from.elements);
  to->size = Clamped(from.size);
  to->fmt = static_cast<rknn_tensor_format>(from.layout);
  to->type = static_cast<rknn_tensor_type>(from.type);
  to->qnt_type = static_cast<rknn_tensor_qnt_type>(from.quantization);
  to->zp = from.zero_point;
  to->scale = from.scale;
  to->w_stride = from.w_stride;
  to->size_with_stride = Clamped(from.size_with_stride);
}

uint32_t InternalOutputType(const TensorAttr& attr) {
  return IsFloat(attr.type) ? static_cast<uint32_t>(RKNN_TENSOR_FLOAT32)
                            : attr.type;
}

Expected<uint64_t> OutputSize(const TensorAttr& attr, bool want_float) {
  const bool supported =
      ElementSize(attr.type) != 0 && attr.type != RKNN_TENSOR_BFLOAT16;
  const size_t element = want_float ? sizeof(float) : ElementSize(attr.type);
  const auto size = base::CheckedMultiply(attr.elements, element);
  if (!supported || !size || *size > std::numeric_limits<uint32_t>::max()) {
    return Error{Code::kUnimplemented,
                 std::string("output '") + attr.name + "' of " +
                     DimsText(attr) + " " + TypeConstant(attr.type) +
                     " cannot be fetched by rknn_outputs_get in this version: "
                     "bind memory with rknn_set_io_mem"};
  }
  return *size;
}

void ConvertOutput(const TensorAttr& attr, bool want_float,
                   std::span<const std::byte> from, std::span<std::byte> to) {
  if (want_float) return ConvertToFloats(attr, from, to);
  if (attr.type == RKNN_TENSOR_FLOAT16) return ToHalves(from, to);
  Copy(from, to);
}

Expected<void> CheckInputSize(const TensorAttr& attr, uint32_t type,
                              uint64_t size, uint64_t needed) {
  if (size == needed) return {};
  const uint32_t* fitting = nullptr;
  // In the order of how often programs mean them.
  static constexpr uint32_t kCandidates[] = {
      RKNN_TENSOR_UINT8, RKNN_TENSOR_FLOAT32, RKNN_TENSOR_FLOAT16,
      RKNN_TENSOR_INT64};
  for (const uint32_t& candidate : kCandidates) {
    if (kTypes[candidate].input && candidate != type &&
        attr.elements * kTypes[candidate].size == size) {
      fitting = &candidate;
      break;
    }
  }
  if (size > needed && fitting == nullptr) return {};
  const auto name = static_cast<rknn_tensor_type>(type);
  std::string text = std::string("input '") + attr.name +
                     "': " + std::to_string(size) + " bytes given, " +
                     std::to_string(needed) + " needed for " + DimsText(attr) +
                     " " + get_type_string(name) + ".";
  if (fitting != nullptr) {
    text += " " + std::to_string(size) + " bytes fit " +
            get_type_string(static_cast<rknn_tensor_type>(*fitting)) +
            ": set type=" + TypeConstant(*fitting);
  } else {
    text += " Give all elements of the input and their size in bytes";
  }
  return Error{Code::kInvalidArgument, text};
}

}  // namespace rknnd::client
