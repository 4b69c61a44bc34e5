// Vectors of NEON for the loops of its two levels, which differ in how they
// multiply. Included by their kernels_*.cc only. A template of the level, as in
// vectors_x86.h.

#ifndef DRIVER_RKNPU_EMULATOR_KERNELS_VECTORS_NEON_H_
#define DRIVER_RKNPU_EMULATOR_KERNELS_VECTORS_NEON_H_

#include <arm_neon.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace rknnd::rknpu::fast {

template <class Level>
struct VectorsNeon {
  static constexpr size_t kBlock = 16, kVectors = 4, kPixels = 5;
  using Sum = int32x4_t;
  using Weights = int8x16_t;
  using Values = int8x16_t;

  static Sum Zero() { return vdupq_n_s32(0); }
  static Weights LoadWeights(const std::byte* at, size_t v) {
    return vld1q_s8(reinterpret_cast<const int8_t*>(at) + v * 16);
  }
  static Values Broadcast(const std::byte* at) {
    int32_t cell;
    std::memcpy(&cell, at, sizeof(cell));
    return vreinterpretq_s8_s32(vdupq_n_s32(cell));
  }
  static void Store(Sum sum, int32_t* to) { vst1q_s32(to, sum); }
};

}  // namespace rknnd::rknpu::fast

#endif  // DRIVER_RKNPU_EMULATOR_KERNELS_VECTORS_NEON_H_
