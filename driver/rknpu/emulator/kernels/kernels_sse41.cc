// SSE4.1: products of int16, two added at once.

#include <immintrin.h>

#include "driver/rknpu/emulator/kernels/levels.h"
#include "driver/rknpu/emulator/kernels/loops.h"

namespace rknnd::rknpu::fast {
namespace {

struct Sse41 {
  static constexpr Form kForm = Form::kWide;
  static constexpr size_t kBlock = 8, kVectors = 2, kPixels = 6;
  using Sum = __m128i;
  using Weights = __m128i;
  using Values = __m128i;

  static Sum Zero() { return _mm_setzero_si128(); }
  static Weights LoadWeights(const std::byte* at, size_t v) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at) + v);
  }
  static Values Broadcast(const std::byte* at) {
    int32_t cell;
    std::memcpy(&cell, at, sizeof(cell));
    return _mm_set1_epi32(cell);
  }
  static Sum Dot(Sum sum, Weights weights, Values values) {
    return _mm_add_epi32(sum, _mm_madd_epi16(weights, values));
  }
  static void Store(Sum sum, int32_t* to) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), sum);
  }
};

}  // namespace

const Kernels kSse41Kernels = Loops<Sse41>::All("sse41");

}  // namespace rknnd::rknpu::fast
