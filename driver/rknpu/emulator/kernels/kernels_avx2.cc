// AVX2: products of int16, two added at once.

#include "driver/rknpu/emulator/kernels/levels.h"
#include "driver/rknpu/emulator/kernels/loops.h"
#include "driver/rknpu/emulator/kernels/vectors_x86.h"

namespace rknnd::rknpu::fast {
namespace {

struct Avx2 : Vectors256<Avx2> {
  static constexpr Form kForm = Form::kWide;

  static Sum Dot(Sum sum, Weights weights, Values values) {
    return _mm256_add_epi32(sum, _mm256_madd_epi16(weights, values));
  }
};

}  // namespace

const Kernels kAvx2Kernels = Loops<Avx2>::All("avx2");

}  // namespace rknnd::rknpu::fast
