// How a tensor looks from outside the NPU: element type, layout, quantisation,
// strides. Values equal the vendor's C API (client/include/rknn_api.h), so that
// a number means the same from the application down to the device.
// Source of values and of the NC1HWC2 rules: the vendor's API, release 2.3.2.

#ifndef DRIVER_TENSOR_H_
#define DRIVER_TENSOR_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace rknnd::driver {

enum class TensorType : uint32_t {
  kFloat32 = 0,
  kFloat16 = 1,
  kInt8 = 2,
  kUint8 = 3,
  kInt16 = 4,
  kUint16 = 5,
  kInt32 = 6,
  kUint32 = 7,
  kInt64 = 8,
  kBool = 9,
  kInt4 = 10,
  kBfloat16 = 11,
};
inline constexpr uint32_t kTensorTypeCount = 12;

// Bytes of one element; 0 for kInt4, two of which share a byte.
size_t ElementSize(TensorType type);
// As the vendor's header prints it: "FP32", "INT8", ...
const char* TensorTypeName(TensorType type);

enum class TensorLayout : uint32_t {
  kNchw = 0,
  kNhwc = 1,
  kNc1hwc2 = 2,
  kUndefined = 3,  // not 4-D: the model's own axis order
};
inline constexpr uint32_t kTensorLayoutCount = 4;
const char* TensorLayoutName(TensorLayout layout);

enum class Quantization : uint32_t { kNone = 0, kDfp = 1, kAffine = 2 };

inline constexpr size_t kMaxDims = 16;
inline constexpr size_t kMaxNameLength = 255;  // without the final zero

// One input or output as rknn_query reports it.
struct TensorAttr {
  std::string name;
  std::vector<uint32_t> dims;
  uint64_t elements = 0;
  uint64_t size = 0;              // packed bytes
  uint64_t size_with_stride = 0;  // bytes with padding; allocate this
  TensorLayout layout = TensorLayout::kUndefined;
  TensorType type = TensorType::kFloat32;
  Quantization quantization = Quantization::kAffine;
  int32_t zero_point = 0;
  float scale = 1.0F;
  // Row pitch in pixels of 4-D NHWC inputs (the width itself when unpadded), 0
  // elsewhere.
  uint32_t w_stride = 0;
  // What the model's file has here, whatever the NPU makes of it: a quantised
  // port whose file has real numbers is float32.
  TensorType file_type = TensorType::kFloat32;
};

// How the bytes of a bound buffer are to be understood; what a client may
// change between query and rknn_set_io_mem.
struct TensorFormat {
  TensorType type = TensorType::kFloat32;
  TensorLayout layout = TensorLayout::kUndefined;
  bool pass_through = false;  // already what the native attribute describes
  uint32_t w_stride = 0;      // pixels; 0: the width
  uint32_t h_stride = 0;      // rows per batch item; 0: the height

  friend bool operator==(const TensorFormat&, const TensorFormat&) = default;
};

}  // namespace rknnd::driver

#endif  // DRIVER_TENSOR_H_
