// What NEON has for the loops of dots.h. Each file that includes it compiles it
// for its own CPU, so it is in no named namespace.

#ifndef DRIVER_SOFT_DOTS_NEON_VECTORS_H_
#define DRIVER_SOFT_DOTS_NEON_VECTORS_H_

#include <arm_neon.h>

#include <cstddef>
#include <cstdint>

#include "driver/soft/dots/dots.h"

namespace rknnd::soft {
namespace {

struct NeonDots {
  static constexpr RowForm kForm = RowForm::kBytes;
  static constexpr uint32_t kMoreOfBytes = 0;
  static constexpr size_t kColumns = 8, kLanes = 4;
  using Ints = int32x4_t;
  using Floats = float32x4_t;

  static Ints NoInts() { return vdupq_n_s32(0); }
  static Floats NoFloats() { return vdupq_n_f32(0); }
  static int8x16_t Load(const std::byte* at) {
    return vld1q_s8(reinterpret_cast<const int8_t*>(at));
  }
  static Ints Products(Ints sum, int8x16_t column, int8x16_t row) {
    sum = vpadalq_s16(sum, vmull_s8(vget_low_s8(column), vget_low_s8(row)));
    return vpadalq_s16(sum, vmull_high_s8(column, row));
  }
  static Ints Bytes(Ints sum, const std::byte* column, const std::byte* row) {
    sum = Products(sum, Load(column), Load(row));
    return Products(sum, Load(column + 16), Load(row + 16));
  }
  // The int4 of a unit and 8, as bytes.
  static int8x16_t Even(const std::byte* column) {
    return vandq_s8(veorq_s8(Load(column), vdupq_n_s8(-0x78)), vdupq_n_s8(0xf));
  }
  static int8x16_t Odd(const std::byte* column) {
    return vreinterpretq_s8_u8(vshrq_n_u8(
        vreinterpretq_u8_s8(veorq_s8(Load(column), vdupq_n_s8(-0x78))), 4));
  }
  static Ints Pairs(Ints sum, const std::byte* column, const std::byte* row) {
    sum = Products(sum, Even(column), Load(row));
    return Products(sum, Odd(column), Load(row + 16));
  }
  static Floats Halves(Floats sum, const std::byte* column,
                       const std::byte* row) {
    for (size_t i = 0; i < 32; i += 4) {
      sum = vfmaq_f32(
          sum, Widen(column + i * 2),
          vld1q_f32(reinterpret_cast<const float*>(row + i * sizeof(float))));
    }
    return sum;
  }
  static Floats Widen(const std::byte* at) {
    return vcvt_f32_f16(
        vreinterpret_f16_u16(vld1_u16(reinterpret_cast<const uint16_t*>(at))));
  }
  static int32_t Total(Ints sum) { return vaddvq_s32(sum); }
  static float Total(Floats sum) { return vaddvq_f32(sum); }
};

}  // namespace
}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_DOTS_NEON_VECTORS_H_
