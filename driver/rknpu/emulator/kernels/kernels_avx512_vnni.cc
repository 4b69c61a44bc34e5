// AVX-512 with dot products of bytes.

#include "driver/rknpu/emulator/kernels/levels.h"
#include "driver/rknpu/emulator/kernels/loops.h"
#include "driver/rknpu/emulator/kernels/vectors_x86.h"

namespace rknnd::rknpu::fast {
namespace {

struct Avx512Vnni : Vectors512<Avx512Vnni> {
  static constexpr Form kForm = Form::kUnsigned;

  static Sum Dot(Sum sum, Weights weights, Values values) {
    return _mm512_dpbusd_epi32(sum, weights, values);
  }
};

}  // namespace

const Kernels kAvx512VnniKernels = Loops<Avx512Vnni>::All("avx512_vnni");

}  // namespace rknnd::rknpu::fast
