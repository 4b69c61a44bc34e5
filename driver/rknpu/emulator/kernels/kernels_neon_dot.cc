// NEON with dot products of bytes.

#include "driver/rknpu/emulator/kernels/levels.h"
#include "driver/rknpu/emulator/kernels/loops.h"
#include "driver/rknpu/emulator/kernels/vectors_neon.h"

namespace rknnd::rknpu::fast {
namespace {

struct NeonDot : VectorsNeon<NeonDot> {
  static constexpr Form kForm = Form::kBytes;

  static Sum Dot(Sum sum, Weights weights, Values values) {
    return vdotq_s32(sum, weights, values);
  }
};

}  // namespace

const Kernels kNeonDotKernels = Loops<NeonDot>::All("neon_dot");

}  // namespace rknnd::rknpu::fast
