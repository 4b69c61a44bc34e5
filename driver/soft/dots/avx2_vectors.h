// What AVX2 has for the loops of dots.h. Each file that includes it compiles it
// for its own CPU, so it is in no named namespace.

#ifndef DRIVER_SOFT_DOTS_AVX2_VECTORS_H_
#define DRIVER_SOFT_DOTS_AVX2_VECTORS_H_

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "driver/soft/dots/dots.h"

namespace rknnd::soft {
namespace {

struct Avx2Dots {
  static constexpr RowForm kForm = RowForm::kWide;
  static constexpr uint32_t kMoreOfBytes = 0;
  static constexpr size_t kColumns = 8, kLanes = 8;
  using Ints = __m256i;
  using Floats = __m256;

  static Ints NoInts() { return _mm256_setzero_si256(); }
  static Floats NoFloats() { return _mm256_setzero_ps(); }
  static __m128i LoadHalf(const std::byte* at) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
  }
  static __m256i Load(const std::byte* at) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at));
  }
  static Ints Bytes(Ints sum, const std::byte* column, const std::byte* row) {
    sum = _mm256_add_epi32(
        sum,
        _mm256_madd_epi16(_mm256_cvtepi8_epi16(LoadHalf(column)), Load(row)));
    return _mm256_add_epi32(
        sum, _mm256_madd_epi16(_mm256_cvtepi8_epi16(LoadHalf(column + 16)),
                               Load(row + 32)));
  }
  // The 32 int4 of a unit and 8, as bytes: even ones, then odd ones.
  static __m256i Unpaired(const std::byte* column) {
    const __m128i pairs = _mm_xor_si128(LoadHalf(column), _mm_set1_epi8(-0x78));
    return _mm256_and_si256(
        _mm256_inserti128_si256(_mm256_castsi128_si256(pairs),
                                _mm_srli_epi16(pairs, 4), 1),
        _mm256_set1_epi8(0xf));
  }
  // No sum of two products is beyond 15 * 128 * 2.
  static Ints Pairs(Ints sum, const std::byte* column, const std::byte* row) {
    return _mm256_add_epi32(
        sum,
        _mm256_madd_epi16(_mm256_maddubs_epi16(Unpaired(column), Load(row)),
                          _mm256_set1_epi16(1)));
  }
  static Floats Halves(Floats sum, const std::byte* column,
                       const std::byte* row) {
    for (size_t i = 0; i < 32; i += 8) {
      sum = _mm256_fmadd_ps(_mm256_cvtph_ps(LoadHalf(column + i * 2)),
                            _mm256_loadu_ps(reinterpret_cast<const float*>(
                                row + i * sizeof(float))),
                            sum);
    }
    return sum;
  }
  static Floats Widen(const std::byte* at) {
    return _mm256_cvtph_ps(LoadHalf(at));
  }
  static int32_t Total(Ints sum) {
    __m128i half = _mm_add_epi32(_mm256_castsi256_si128(sum),
                                 _mm256_extracti128_si256(sum, 1));
    half = _mm_hadd_epi32(half, half);
    return _mm_cvtsi128_si32(_mm_hadd_epi32(half, half));
  }
  static float Total(Floats sum) {
    __m128 half =
        _mm_add_ps(_mm256_castps256_ps128(sum), _mm256_extractf128_ps(sum, 1));
    half = _mm_hadd_ps(half, half);
    return _mm_cvtss_f32(_mm_hadd_ps(half, half));
  }
};

}  // namespace
}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_DOTS_AVX2_VECTORS_H_
