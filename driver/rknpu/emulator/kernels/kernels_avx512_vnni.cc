// AVX-512 with dot products of bytes.

#include <immintrin.h>

#include "driver/rknpu/emulator/kernels/levels.h"
#include "driver/rknpu/emulator/kernels/loops.h"

namespace rknnd::rknpu::fast {
namespace {

struct Avx512Vnni {
  static constexpr Form kForm = Form::kUnsigned;
  static constexpr size_t kBlock = 32, kVectors = 2, kPixels = 8;
  using Sum = __m512i;
  using Weights = __m512i;
  using Values = __m512i;

  static Sum Zero() { return _mm512_setzero_si512(); }
  static Weights LoadWeights(const std::byte* at, size_t v) {
    return _mm512_loadu_si512(reinterpret_cast<const __m512i*>(at) + v);
  }
  static Values Broadcast(const std::byte* at) {
    int32_t cell;
    std::memcpy(&cell, at, sizeof(cell));
    return _mm512_set1_epi32(cell);
  }
  static Sum Dot(Sum sum, Weights weights, Values values) {
    return _mm512_dpbusd_epi32(sum, weights, values);
  }
  static void Store(Sum sum, int32_t* to) {
    _mm512_storeu_si512(reinterpret_cast<__m512i*>(to), sum);
  }
};

}  // namespace

const Kernels kAvx512VnniKernels = Loops<Avx512Vnni>::All("avx512_vnni");

}  // namespace rknnd::rknpu::fast
