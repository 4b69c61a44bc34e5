// NEON: products of bytes, widened step by step.

#include <arm_neon.h>

#include "driver/rknpu/emulator/kernels/levels.h"
#include "driver/rknpu/emulator/kernels/loops.h"

namespace rknnd::rknpu::fast {
namespace {

struct Neon {
  static constexpr Form kForm = Form::kBytes;
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
  static Sum Dot(Sum sum, Weights weights, Values values) {
    const int32x4_t low =
        vpaddlq_s16(vmull_s8(vget_low_s8(weights), vget_low_s8(values)));
    const int32x4_t high = vpaddlq_s16(vmull_high_s8(weights, values));
    return vaddq_s32(sum, vpaddq_s32(low, high));
  }
  static void Store(Sum sum, int32_t* to) { vst1q_s32(to, sum); }
};

}  // namespace

const Kernels kNeonKernels = Loops<Neon>::All("neon");

}  // namespace rknnd::rknpu::fast
