// AVX2 with dot products of bytes.

#include "driver/rknpu/emulator/kernels/levels.h"
#include "driver/rknpu/emulator/kernels/loops.h"
#include "driver/rknpu/emulator/kernels/vectors_x86.h"

namespace rknnd::rknpu::fast {
namespace {

struct Avx2Vnni : Vectors256<Avx2Vnni> {
  static constexpr Form kForm = Form::kUnsigned;

  static Sum Dot(Sum sum, Weights weights, Values values) {
    return _mm256_dpbusd_avx_epi32(sum, weights, values);
  }
};

}  // namespace

const Kernels kAvx2VnniKernels = Loops<Avx2Vnni>::All("avx2_vnni");

}  // namespace rknnd::rknpu::fast
