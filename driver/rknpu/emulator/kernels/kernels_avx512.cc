// AVX-512: products of int16, two added at once.

#include <immintrin.h>

#include "driver/rknpu/emulator/kernels/levels.h"
#include "driver/rknpu/emulator/kernels/loops.h"

namespace rknnd::rknpu::fast {
namespace {

struct Avx512 {
  static constexpr Form kForm = Form::kWide;
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
    return _mm512_add_epi32(sum, _mm512_madd_epi16(weights, values));
  }
  static void Store(Sum sum, int32_t* to) {
    _mm512_storeu_si512(reinterpret_cast<__m512i*>(to), sum);
  }
};

}  // namespace

const Kernels kAvx512Kernels = Loops<Avx512>::All("avx512");

}  // namespace rknnd::rknpu::fast
