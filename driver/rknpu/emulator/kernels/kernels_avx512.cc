// AVX-512: products of int16, two added at once.

#include "driver/rknpu/emulator/kernels/levels.h"
#include "driver/rknpu/emulator/kernels/loops.h"
#include "driver/rknpu/emulator/kernels/vectors_x86.h"

namespace rknnd::rknpu::fast {
namespace {

struct Avx512 : Vectors512<Avx512> {
  static constexpr Form kForm = Form::kWide;

  static Sum Dot(Sum sum, Weights weights, Values values) {
    return _mm512_add_epi32(sum, _mm512_madd_epi16(weights, values));
  }
};

}  // namespace

const Kernels kAvx512Kernels = Loops<Avx512>::All("avx512");

}  // namespace rknnd::rknpu::fast
