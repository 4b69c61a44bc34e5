// Products of a row with columns with SSE4.1. Halves become floats by the
// integers that they are: this level has no instruction for it.

#include <smmintrin.h>

#include "driver/soft/dots/dot_levels.h"
#include "driver/soft/dots/dot_loops.h"

namespace rknnd::soft {
namespace {

struct Sse41 {
  static constexpr RowForm kForm = RowForm::kWide;
  static constexpr uint32_t kMoreOfBytes = 0;
  static constexpr size_t kColumns = 8, kLanes = 4;
  using Ints = __m128i;
  using Floats = __m128;

  static Ints NoInts() { return _mm_setzero_si128(); }
  static Floats NoFloats() { return _mm_setzero_ps(); }
  static __m128i Load(const std::byte* at) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
  }
  static Ints Bytes(Ints sum, const std::byte* column, const std::byte* row) {
    for (size_t i = 0; i < 32; i += 8) {
      const __m128i wide = _mm_cvtepi8_epi16(
          _mm_loadl_epi64(reinterpret_cast<const __m128i*>(column + i)));
      sum = _mm_add_epi32(sum, _mm_madd_epi16(wide, Load(row + i * 2)));
    }
    return sum;
  }
  // No sum of two products is beyond 15 * 128 * 2.
  static Ints Pairs(Ints sum, const std::byte* column, const std::byte* row) {
    const __m128i low = _mm_set1_epi8(0xf);
    const __m128i pairs = _mm_xor_si128(Load(column), _mm_set1_epi8(-0x78));
    const __m128i even =
        _mm_maddubs_epi16(_mm_and_si128(pairs, low), Load(row));
    const __m128i odd = _mm_maddubs_epi16(
        _mm_and_si128(_mm_srli_epi16(pairs, 4), low), Load(row + 16));
    return _mm_add_epi32(
        sum, _mm_madd_epi16(_mm_add_epi16(even, odd), _mm_set1_epi16(1)));
  }
  // Exponent and fraction move to where a float has them; what lacks to the
  // float's bias is multiplied in, which makes normal numbers of small ones.
  static __m128 ToFloats(__m128i halves) {
    const __m128i sign = _mm_slli_epi32(_mm_srli_epi32(halves, 15), 31);
    const __m128i rest = _mm_and_si128(halves, _mm_set1_epi32(0x7fff));
    const __m128 scaled =
        _mm_mul_ps(_mm_castsi128_ps(_mm_slli_epi32(rest, 13)),
                   _mm_castsi128_ps(_mm_set1_epi32((127 + 112) << 23)));
    // Infinities and what is no number keep their exponent.
    const __m128i beyond =
        _mm_and_si128(_mm_cmpgt_epi32(rest, _mm_set1_epi32(0x7bff)),
                      _mm_set1_epi32(0x7f800000));
    return _mm_or_ps(scaled, _mm_castsi128_ps(_mm_or_si128(sign, beyond)));
  }
  static Floats Halves(Floats sum, const std::byte* column,
                       const std::byte* row) {
    for (size_t i = 0; i < 32; i += 8) {
      const __m128i halves = Load(column + i * 2);
      const auto* const values =
          reinterpret_cast<const float*>(row + i * sizeof(float));
      sum = _mm_add_ps(sum, _mm_mul_ps(ToFloats(_mm_cvtepu16_epi32(halves)),
                                       _mm_loadu_ps(values)));
      sum = _mm_add_ps(
          sum,
          _mm_mul_ps(ToFloats(_mm_unpackhi_epi16(halves, _mm_setzero_si128())),
                     _mm_loadu_ps(values + 4)));
    }
    return sum;
  }
  static Floats Widen(const std::byte* at) {
    return ToFloats(_mm_cvtepu16_epi32(
        _mm_loadl_epi64(reinterpret_cast<const __m128i*>(at))));
  }
  static int32_t Total(Ints sum) {
    sum = _mm_hadd_epi32(sum, sum);
    return _mm_cvtsi128_si32(_mm_hadd_epi32(sum, sum));
  }
  static float Total(Floats sum) {
    sum = _mm_hadd_ps(sum, sum);
    return _mm_cvtss_f32(_mm_hadd_ps(sum, sum));
  }
};

}  // namespace

constexpr DotKernels kDotsSse41 = DotLoops<Sse41>::Of("sse41");

}  // namespace rknnd::soft
