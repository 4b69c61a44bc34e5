// Products of bytes with AVX-512 of CPUs that have no dot product of bytes:
// activations as int16, weights widened as they are read, two products added at
// once.

#include <immintrin.h>

#include "driver/soft/tiles/levels.h"
#include "driver/soft/tiles/row_loops.h"
#include "driver/soft/tiles/tile_loops.h"
#include "driver/soft/tiles/winograd_loops.h"

namespace rknnd::soft {
namespace {

struct Avx512 {
  static constexpr size_t kLanes = 16, kSums = 2, kGroups = 1, kPixels = 8;
  static constexpr TileForm kForm = TileForm::kWide;
  using Sum = __m512i;  // two of each of eight channels
  using Weights = __m512i;
  using Values = __m512i;

  static Sum Zero() { return _mm512_setzero_si512(); }
  static Weights LoadWeights(const std::byte* at, size_t s) {
    return _mm512_cvtepi8_epi16(
        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at + s * 32)));
  }
  static Weights LoadWide(const int16_t* at, size_t s) {
    return _mm512_loadu_si512(at + s * 32);
  }
  template <class Halves>
  static Halves WidenHalves(const std::byte* at) {
    return reinterpret_cast<Halves>(LoadWeights(at, 0));
  }
  static Values Broadcast(const std::byte* at) {
    return _mm512_broadcastq_epi64(
        _mm_loadl_epi64(reinterpret_cast<const __m128i*>(at)));
  }
  static Sum Dot(Sum sum, Weights weights, Values values) {
    return _mm512_add_epi32(sum, _mm512_madd_epi16(weights, values));
  }
  template <class Ints>
  static Ints Join(const Sum* sums) {
    const __m512i even = _mm512_set_epi32(30, 28, 26, 24, 22, 20, 18, 16, 14,
                                          12, 10, 8, 6, 4, 2, 0);
    const __m512i odd = _mm512_set_epi32(31, 29, 27, 25, 23, 21, 19, 17, 15, 13,
                                         11, 9, 7, 5, 3, 1);
    return reinterpret_cast<Ints>(
        _mm512_add_epi32(_mm512_permutex2var_epi32(sums[0], even, sums[1]),
                         _mm512_permutex2var_epi32(sums[0], odd, sums[1])));
  }
  template <class Ints>
  static Ints Widen(const std::byte* at) {
    return reinterpret_cast<Ints>(_mm512_cvtepi8_epi32(
        _mm_loadu_si128(reinterpret_cast<const __m128i*>(at))));
  }
  template <class Bytes, class Ints>
  static Bytes Narrow(const Ints& ints) {
    return reinterpret_cast<Bytes>(
        _mm512_cvtepi32_epi8(reinterpret_cast<__m512i>(ints)));
  }
};

struct FloatAvx512 {
  static constexpr size_t kLanes = 16, kSums = 1, kGroups = 2, kPixels = 8;
  static constexpr size_t kRowOutputs = 8, kRowSums = 24;
  static constexpr TileForm kForm = TileForm::kFloat;
  using Sum = __m512;
  using Weights = __m512;
  using Values = __m512;

  static Sum Zero() { return _mm512_setzero_ps(); }
  static Weights LoadWeights(const std::byte* at, size_t) {
    return _mm512_loadu_ps(at);
  }
  static Values Broadcast(const std::byte* at) {
    return _mm512_set1_ps(*reinterpret_cast<const float*>(at));
  }
  static Sum Dot(Sum sum, Weights weights, Values values) {
    return _mm512_fmadd_ps(weights, values, sum);
  }
  template <class Floats>
  static Floats Join(const Sum* sums) {
    return reinterpret_cast<Floats>(sums[0]);
  }
};

}  // namespace

constexpr ByteKernels kBytesAvx512 =
    TileLoops<Avx512>::OfBytes("avx512", &WinogradLoops<Avx512>::kKernels);
constexpr FloatKernels kFloatsAvx512 = FloatKernelsOf<FloatAvx512>("avx512");

}  // namespace rknnd::soft
