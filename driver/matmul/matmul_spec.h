// A matrix product without a model, C = A x B, as rknn_matmul_create describes
// one: types, layouts, quantisation and the list of shapes. The client library
// writes it as the bytes of a model; a device that loads these multiplies.
// Numbers are those of the vendor's C API (client/include/rknn_matmul_api.h);
// which SoC multiplies what is from the vendor's guide, tables 3-10 to 3-14,
// and the remarks in its header. Where these two differ, only what both refuse
// is refused.
//
// Thread: any. No abseil: the client library uses this.

#ifndef DRIVER_MATMUL_MATMUL_SPEC_H_
#define DRIVER_MATMUL_MATMUL_SPEC_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/values/expected.h"

namespace rknnd::matmul {

// Of one number; values of rknn_tensor_type.
enum class Element : uint32_t {
  kFloat32 = 0,
  kFloat16 = 1,
  kInt8 = 2,
  kInt16 = 4,
  kInt32 = 6,
  kInt4 = 10,
  kBfloat16 = 11,
};
// Two int4 share a byte, the even one in the low half.
uint32_t BitsOf(Element element);

// How a matrix lies in memory; values of rknn_matmul_layout.
enum class Layout : int32_t { kNormal = 0, kNative = 1, kTransposed = 2 };

// How B's integers stand for real numbers; values of rknn_matmul_quant_type
// are twice these, and one more where there are zero points.
enum class Scales : uint8_t { kPerLayer = 0, kPerChannel = 1, kPerGroup = 2 };

struct Shape {
  int32_t m = 0, k = 0, n = 0;
  friend bool operator==(const Shape&, const Shape&) = default;
};
std::string ShapeText(const Shape& shape);  // "M 1, K 32, N 64"

// Of one context.
inline constexpr size_t kMostShapes = 256;

struct Spec {
  int32_t type = 0;  // rknn_matmul_type
  Layout b_layout = Layout::kNormal;
  bool native_ac = false;
  int32_t b_quantization = 0;   // rknn_matmul_quant_type
  int32_t ac_quantization = 0;  // likewise; per layer
  int32_t group = 0;            // rows of K that share a scale, of kPerGroup
  std::vector<Shape> shapes;

  [[nodiscard]] Scales b_scales() const {
    return static_cast<Scales>(b_quantization / 2);
  }
  // Whether the result depends on scales and zero points: others are products
  // of half-precision numbers, or plain sums of integers.
  [[nodiscard]] bool is_scaled() const;
  // B's scales, and as many zero points, for one shape.
  [[nodiscard]] int64_t ScaleCount(const Shape& shape) const;
};

// Of A, B and C. Of a type that Check() has seen.
struct Elements {
  Element a, b, c;
};
Elements ElementsOf(int32_t type);
// "RKNN_INT8_MM_INT8_TO_INT32"
const char* TypeName(int32_t type);

// Whether that SoC multiplies that. What it refuses, the guide and the header
// refuse; the text quotes the limit.
base::Expected<void> Check(const Spec& spec, const std::string& soc);

// The bytes by which a product is named to a device, and back. What a device
// reads may come from anybody: Read() checks all but what Check() does.
bool IsSpec(std::span<const std::byte> bytes);
std::vector<std::byte> Write(const Spec& spec);
base::Expected<Spec> Read(std::span<const std::byte> bytes);

// Scales and zero points are an input of the device beside A and B, all of
// them floats: this, then B's scales, then B's zero points.
struct ScaleHeader {
  float a_scale = 1, a_zero = 0, c_scale = 1, c_zero = 0;
};
inline constexpr int64_t kScaleHeader = 4;  // floats

}  // namespace rknnd::matmul

#endif  // DRIVER_MATMUL_MATMUL_SPEC_H_
