#include "driver/matmul/matmul_spec.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

namespace rknnd::matmul {
namespace {

using base::Code;
using base::Error;
using base::Expected;

constexpr std::array kMagic = {'\x7f', 'M', 'a', 't', 'm', 'u', 'l', '\x01'};
constexpr size_t kFixedNumbers = 7;
// Sums of products of bytes fit 32 bits so far.
constexpr int32_t kMostK = 131072;
constexpr int32_t kMostQuantization = 5;

// Which SoCs have a type: bits.
constexpr uint32_t kRk356x = 1, kRk3576 = 2, kRk3588 = 4;

struct Type {
  int32_t number;
  const char* name;
  Elements elements;
  uint32_t socs;  // table 3-13; types newer than it: where it mixes types
};
constexpr Element kF32 = Element::kFloat32, kF16 = Element::kFloat16,
                  kI8 = Element::kInt8, kI4 = Element::kInt4;
constexpr std::array<Type, 13> kTypes = {{
    {1,
     "RKNN_FLOAT16_MM_FLOAT16_TO_FLOAT32",
     {kF16, kF16, kF32},
     kRk356x | kRk3576 | kRk3588},
    {2,
     "RKNN_INT8_MM_INT8_TO_INT32",
     {kI8, kI8, Element::kInt32},
     kRk356x | kRk3576 | kRk3588},
    {3, "RKNN_INT8_MM_INT8_TO_INT8", {kI8, kI8, kI8}, kRk3588},
    {4,
     "RKNN_FLOAT16_MM_FLOAT16_TO_FLOAT16",
     {kF16, kF16, kF16},
     kRk3576 | kRk3588},
    {5, "RKNN_FLOAT16_MM_INT8_TO_FLOAT32", {kF16, kI8, kF32}, kRk3576},
    {6, "RKNN_FLOAT16_MM_INT8_TO_FLOAT16", {kF16, kI8, kF16}, kRk3576},
    {7, "RKNN_FLOAT16_MM_INT4_TO_FLOAT32", {kF16, kI4, kF32}, kRk3576},
    {8, "RKNN_FLOAT16_MM_INT4_TO_FLOAT16", {kF16, kI4, kF16}, kRk3576},
    {9, "RKNN_INT8_MM_INT8_TO_FLOAT32", {kI8, kI8, kF32}, kRk3588},
    {10, "RKNN_INT4_MM_INT4_TO_INT16", {kI4, kI4, Element::kInt16}, kRk3588},
    {11, "RKNN_INT8_MM_INT4_TO_INT32", {kI8, kI4, Element::kInt32}, kRk3576},
    {12,
     "RKNN_FLOAT16_MM_INT4_TO_BFLOAT16",
     {kF16, kI4, Element::kBfloat16},
     kRk3576},
    {15, "RKNN_INT8_MM_INT4_TO_FLOAT16", {kI8, kI4, kF16}, kRk3576},
}};

const Type* FindType(int32_t number) {
  const auto* const found =
      std::find_if(kTypes.begin(), kTypes.end(),
                   [&](const Type& type) { return type.number == number; });
  return found == kTypes.end() ? nullptr : &*found;
}

uint32_t SocBit(std::string_view soc) {
  if (soc == "rk3588" || soc == "rk3588s") return kRk3588;
  if (soc == "rk3576") return kRk3576;
  if (soc == "rk3562" || soc == "rk3566" || soc == "rk3568") return kRk356x;
  return 0;
}

// Table 3-14, as far as the header has nothing smaller.
struct Limits {
  int32_t k_step, most_k, n_step, most_n;
};
Limits LimitsOf(const Elements& elements, const std::string& soc) {
  const bool is_half = elements.a == kF16;
  if (SocBit(soc) == kRk356x) {
    const int32_t k_step = is_half && soc != "rk3562" ? 16 : 32;
    return {k_step, 10240, is_half ? 8 : 16, 4096};
  }
  if (elements.a == kI4) return {32, kMostK, 64, 8192};
  return {32, kMostK, is_half ? 16 : 32, 4096};
}

Error Wrong(std::string text) {
  return {Code::kInvalidArgument, std::move(text)};
}

std::string SupportedTypes(uint32_t soc) {
  std::string text;
  for (const Type& type : kTypes) {
    if ((type.socs & soc) == 0) continue;
    text += (text.empty() ? "" : ", ") + std::string(type.name);
  }
  return text;
}

Expected<void> CheckSize(const char* what, const char* letter, int32_t value,
                         int32_t step, int32_t most, const std::string& soc) {
  if (value > 0 && value % step == 0 && value <= most) return {};
  return Wrong(std::string(letter) + " is " + std::to_string(value) +
               ": with " + what + " the " + soc + " takes multiples of " +
               std::to_string(step) + " up to " + std::to_string(most) +
               " (table 3-14 of the vendor's guide)");
}

Expected<void> CheckShape(const Spec& spec, const Shape& shape,
                          const std::string& soc) {
  const Elements elements = ElementsOf(spec.type);
  const Limits limits = LimitsOf(elements, soc);
  const char* const name = TypeName(spec.type);
  if (shape.m <= 0) {
    return Wrong("M is " + std::to_string(shape.m) + ": it is at least 1");
  }
  if (Expected<void> k =
          CheckSize(name, "K", shape.k, limits.k_step, limits.most_k, soc);
      !k) {
    return k;
  }
  if (Expected<void> n =
          CheckSize(name, "N", shape.n, limits.n_step, limits.most_n, soc);
      !n) {
    return n;
  }
  if (spec.b_scales() == Scales::kPerGroup &&
      (spec.group <= 0 || shape.k % spec.group != 0)) {
    return Wrong("group_size is " + std::to_string(spec.group) +
                 ": it divides K, which is " + std::to_string(shape.k));
  }
  // Sizes are uint32_t in the C API.
  const auto bytes = [](int64_t rows, int64_t columns, Element element) {
    return rows * columns * BitsOf(element) / 8;
  };
  if (bytes(shape.m, shape.k, elements.a) > UINT32_MAX ||
      bytes(shape.m, shape.n, elements.c) > UINT32_MAX ||
      bytes(shape.k, shape.n, elements.b) > UINT32_MAX) {
    return Wrong(ShapeText(shape) +
                 ": a matrix has 4 GiB or more, which no memory of this API "
                 "has; split M");
  }
  return {};
}

void Append(std::vector<std::byte>& bytes, int32_t number) {
  std::array<std::byte, sizeof number> raw;
  std::memcpy(raw.data(), &number, sizeof number);
  bytes.insert(bytes.end(), raw.begin(), raw.end());
}

}  // namespace

uint32_t BitsOf(Element element) {
  switch (element) {
    case Element::kInt4:
      return 4;
    case Element::kInt8:
      return 8;
    case Element::kFloat16:
    case Element::kBfloat16:
    case Element::kInt16:
      return 16;
    case Element::kFloat32:
    case Element::kInt32:
      break;
  }
  return 32;
}

std::string ShapeText(const Shape& shape) {
  return "M " + std::to_string(shape.m) + ", K " + std::to_string(shape.k) +
         ", N " + std::to_string(shape.n);
}

Elements ElementsOf(int32_t type) { return FindType(type)->elements; }

const char* TypeName(int32_t type) {
  const Type* const found = FindType(type);
  return found == nullptr ? "unknown" : found->name;
}

bool Spec::is_scaled() const {
  const Elements elements = ElementsOf(type);
  if (elements.a == kF16) return elements.b != kF16;
  return elements.c != Element::kInt32 && elements.c != Element::kInt16;
}

int64_t Spec::ScaleCount(const Shape& shape) const {
  switch (b_scales()) {
    case Scales::kPerLayer:
      return 1;
    case Scales::kPerChannel:
      return shape.n;
    case Scales::kPerGroup:
      break;
  }
  return int64_t{shape.n} * (shape.k / std::max(group, 1));
}

Expected<void> Check(const Spec& spec, const std::string& soc) {
  const uint32_t bit = SocBit(soc);
  if (bit == 0) {
    return Error{Code::kUnimplemented,
                 "the NPU of the " + soc + " has no matmul API"};
  }
  const Type* const type = FindType(spec.type);
  if (type == nullptr) {
    return Wrong("type " + std::to_string(spec.type) +
                 " is none of rknn_matmul_type");
  }
  if ((type->socs & bit) == 0) {
    return Error{Code::kUnimplemented,
                 std::string("type ") + type->name + ": the " + soc +
                     " multiplies " + SupportedTypes(bit) +
                     " (table 3-13 of the vendor's guide)"};
  }
  if (spec.b_layout == Layout::kTransposed &&
      (soc == "rk3566" || soc == "rk3568")) {
    return Error{Code::kUnimplemented,
                 "B_layout RKNN_MM_LAYOUT_TP_NORM: the " + soc +
                     " has RKNN_MM_LAYOUT_NORM and RKNN_MM_LAYOUT_NATIVE"};
  }
  if (spec.b_scales() == Scales::kPerGroup && !spec.is_scaled()) {
    return Wrong(std::string("B_quant_type ") +
                 std::to_string(spec.b_quantization) +
                 ": a scale for each group has no use with " + type->name +
                 ", whose result is not scaled");
  }
  if (spec.shapes.empty()) return Wrong("there is no shape");
  for (const Shape& shape : spec.shapes) {
    if (Expected<void> checked = CheckShape(spec, shape, soc); !checked) {
      return checked;
    }
  }
  return {};
}

bool IsSpec(std::span<const std::byte> bytes) {
  return bytes.size() >= kMagic.size() &&
         std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) == 0;
}

std::vector<std::byte> Write(const Spec& spec) {
  std::vector<std::byte> bytes(kMagic.size());
  std::memcpy(bytes.data(), kMagic.data(), kMagic.size());
  for (const int32_t number :
       {spec.type, static_cast<int32_t>(spec.b_layout),
        static_cast<int32_t>(spec.native_ac), spec.b_quantization,
        spec.ac_quantization, spec.group,
        static_cast<int32_t>(spec.shapes.size())}) {
    Append(bytes, number);
  }
  for (const Shape& shape : spec.shapes) {
    for (const int32_t number : {shape.m, shape.k, shape.n}) {
      Append(bytes, number);
    }
  }
  return bytes;
}

Expected<Spec> Read(std::span<const std::byte> bytes) {
  const Error damaged = {Code::kDataLoss,
                         "the description of a matrix product is damaged"};
  if (!IsSpec(bytes)) return damaged;
  bytes = bytes.subspan(kMagic.size());
  if (bytes.size() % sizeof(int32_t) != 0 ||
      bytes.size() < kFixedNumbers * sizeof(int32_t) ||
      bytes.size() > (kFixedNumbers + 3 * kMostShapes) * sizeof(int32_t)) {
    return damaged;
  }
  std::vector<int32_t> numbers(bytes.size() / sizeof(int32_t));
  std::memcpy(numbers.data(), bytes.data(), bytes.size());
  const int32_t count = numbers[6];
  if (count < 1 || numbers.size() != kFixedNumbers + size_t{3} * count) {
    return damaged;
  }
  Spec spec;
  spec.type = numbers[0];
  if (numbers[1] < 0 || numbers[1] > 2) {
    return Wrong("B_layout " + std::to_string(numbers[1]) +
                 " is none of rknn_matmul_layout");
  }
  spec.b_layout = static_cast<Layout>(numbers[1]);
  if (numbers[2] != 0 && numbers[2] != 1) {
    return Wrong("AC_layout " + std::to_string(numbers[2]) +
                 " is neither RKNN_MM_LAYOUT_NORM nor _NATIVE");
  }
  spec.native_ac = numbers[2] == 1;
  if (numbers[3] < 0 || numbers[3] > kMostQuantization) {
    return Wrong("B_quant_type " + std::to_string(numbers[3]) +
                 " is none of rknn_matmul_quant_type");
  }
  spec.b_quantization = numbers[3];
  if (numbers[4] != 0 && numbers[4] != 1) {
    return Wrong("AC_quant_type " + std::to_string(numbers[4]) +
                 " is neither RKNN_QUANT_TYPE_PER_LAYER_SYM nor _ASYM");
  }
  spec.ac_quantization = numbers[4];
  spec.group = numbers[5];
  for (size_t at = kFixedNumbers; at < numbers.size(); at += 3) {
    spec.shapes.push_back({numbers[at], numbers[at + 1], numbers[at + 2]});
  }
  return spec;
}

}  // namespace rknnd::matmul
