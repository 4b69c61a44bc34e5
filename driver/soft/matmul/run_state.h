// What one run of a product works with besides its matrices: scales and zero
// points as numbers, and where its scratch has what. For the files of
// MatmulKernel alone.

#ifndef DRIVER_SOFT_MATMUL_RUN_STATE_H_
#define DRIVER_SOFT_MATMUL_RUN_STATE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "driver/soft/matmul/matmul_kernel.h"
#include "driver/soft/matmul/panel.h"

namespace rknnd::soft {

inline constexpr auto kColumns = static_cast<size_t>(kPanelColumns);
template <class T>
using OfColumns = std::array<T, kColumns>;
// Of C, whose sums stay in a core's nearest cache.
inline constexpr int64_t kRowColumns = 4096;

inline float FloatAt(const std::byte* floats, int64_t i) {
  float value;
  std::memcpy(&value, floats + static_cast<size_t>(i) * sizeof value,
              sizeof value);
  return value;
}

// Whatever a program wrote there: a number of eight bits.
inline int32_t ZeroOf(float value) {
  if (!(value >= -128.0F)) return -128;
  return value > 127.0F ? 127 : static_cast<int32_t>(value);
}

inline uint32_t SumOf(const std::byte* bytes, size_t count) {
  uint32_t sum = 0;
  const auto* const numbers = reinterpret_cast<const int8_t*>(bytes);
  for (size_t i = 0; i < count; ++i) {
    sum += static_cast<uint32_t>(int32_t{numbers[i]});
  }
  return sum;
}

// Scales and zero points of one run.
struct MatmulKernel::Numbers {
  Numbers(const MatmulKernel& kernel, const std::byte* scales)
      : b_scales(scales == nullptr
                     ? nullptr
                     : scales + matmul::kScaleHeader * sizeof(float)),
        count(kernel.spec_.ScaleCount(kernel.shape_)),
        each(kernel.spec_.b_scales() == matmul::Scales::kPerChannel) {
    if (scales == nullptr) return;
    std::memcpy(&header, scales, sizeof header);
    a_zero = kernel.elements_.a == matmul::Element::kFloat16
                 ? 0
                 : ZeroOf(header.a_zero);
    c_zero = ZeroOf(header.c_zero);
    const bool asymmetric = kernel.spec_.b_quantization % 2 != 0;
    for (int64_t i = 0; i < count && asymmetric && !has_b_zeros; ++i) {
      has_b_zeros = ZeroAt(i) != 0;
    }
  }
  // Of one column, where groups have none of their own.
  [[nodiscard]] float ScaleOf(int64_t column) const {
    return b_scales == nullptr ? 1.0F : FloatAt(b_scales, each ? column : 0);
  }
  [[nodiscard]] int32_t ZeroOfColumn(int64_t column) const {
    return has_b_zeros ? ZeroAt(each ? column : 0) : 0;
  }
  [[nodiscard]] float ScaleAt(int64_t i) const { return FloatAt(b_scales, i); }
  [[nodiscard]] int32_t ZeroAt(int64_t i) const {
    return ZeroOf(FloatAt(b_scales, count + i));
  }

  const std::byte* b_scales;
  int64_t count;
  bool each;
  matmul::ScaleHeader header;
  int32_t a_zero = 0, c_zero = 0;
  bool has_b_zeros = false;
};

struct MatmulKernel::Room {
  std::byte* rows;
  std::byte* panels;
  std::byte* sums;
  std::byte* row_of_c;
  uint32_t* row_sums;  // of A, modulo 2^32
  std::byte* line;     // one row of A, as numbers
};

}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_MATMUL_RUN_STATE_H_
