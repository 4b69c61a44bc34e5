// NEON: products of bytes, widened step by step.

#include "driver/rknpu/emulator/kernels/levels.h"
#include "driver/rknpu/emulator/kernels/loops.h"
#include "driver/rknpu/emulator/kernels/vectors_neon.h"

namespace rknnd::rknpu::fast {
namespace {

struct Neon : VectorsNeon<Neon> {
  static constexpr Form kForm = Form::kBytes;

  static Sum Dot(Sum sum, Weights weights, Values values) {
    const int32x4_t low =
        vpaddlq_s16(vmull_s8(vget_low_s8(weights), vget_low_s8(values)));
    const int32x4_t high = vpaddlq_s16(vmull_high_s8(weights, values));
    return vaddq_s32(sum, vpaddq_s32(low, high));
  }
};

}  // namespace

const Kernels kNeonKernels = Loops<Neon>::All("neon");

}  // namespace rknnd::rknpu::fast
