// Products of bytes with AVX2: activations as int16, weights widened as they
// are read, two products added at once. (Multiplying bytes directly, as
// pmaddubsw does, saturates at 16 bits.)

#include <immintrin.h>

#include "driver/soft/tiles/avx_floats.h"
#include "driver/soft/tiles/levels.h"
#include "driver/soft/tiles/row_loops.h"
#include "driver/soft/tiles/tile_loops.h"
#include "driver/soft/tiles/winograd_loops.h"

namespace rknnd::soft {
namespace {

struct Avx2 {
  static constexpr size_t kLanes = 8, kSums = 2, kGroups = 1, kPixels = 6;
  static constexpr TileForm kForm = TileForm::kWide;
  using Sum = __m256i;  // two of each of four channels
  using Weights = __m256i;
  using Values = __m256i;

  static Sum Zero() { return _mm256_setzero_si256(); }
  static Weights LoadWeights(const std::byte* at, size_t s) {
    return _mm256_cvtepi8_epi16(
        _mm_loadu_si128(reinterpret_cast<const __m128i*>(at + s * 16)));
  }
  static Weights LoadWide(const int16_t* at, size_t s) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at + s * 16));
  }
  template <class Halves>
  static Halves WidenHalves(const std::byte* at) {
    return reinterpret_cast<Halves>(LoadWeights(at, 0));
  }
  static Values Broadcast(const std::byte* at) {
    return _mm256_castpd_si256(
        _mm256_broadcast_sd(reinterpret_cast<const double*>(at)));
  }
  static Sum Dot(Sum sum, Weights weights, Values values) {
    return _mm256_add_epi32(sum, _mm256_madd_epi16(weights, values));
  }
  template <class Ints>
  static Ints Join(const Sum* sums) {
    // Within each half: channels 0 1 4 5 | 2 3 6 7.
    return reinterpret_cast<Ints>(_mm256_permute4x64_epi64(
        _mm256_hadd_epi32(sums[0], sums[1]), _MM_SHUFFLE(3, 1, 2, 0)));
  }
  template <class Ints>
  static Ints Widen(const std::byte* at) {
    return reinterpret_cast<Ints>(_mm256_cvtepi8_epi32(
        _mm_loadl_epi64(reinterpret_cast<const __m128i*>(at))));
  }
  template <class Bytes, class Ints>
  static Bytes Narrow(const Ints& ints) {
    const __m128i lowest = _mm_setr_epi8(0, 4, 8, 12, -1, -1, -1, -1, -1, -1,
                                         -1, -1, -1, -1, -1, -1);
    const auto all = reinterpret_cast<__m256i>(ints);
    const __m128i bytes = _mm_unpacklo_epi32(
        _mm_shuffle_epi8(_mm256_castsi256_si128(all), lowest),
        _mm_shuffle_epi8(_mm256_extracti128_si256(all, 1), lowest));
    return reinterpret_cast<Bytes>(_mm_cvtsi128_si64(bytes));
  }
};

struct FloatAvx2 : AvxFloats<FloatAvx2> {
  static Sum Dot(Sum sum, Weights weights, Values values) {
    return _mm256_fmadd_ps(weights, values, sum);
  }
};

}  // namespace

constexpr ByteKernels kBytesAvx2 =
    TileLoops<Avx2>::OfBytes("avx2", &WinogradLoops<Avx2>::kKernels);
constexpr FloatKernels kFloatsAvx2 = FloatKernelsOf<FloatAvx2>("avx2");

}  // namespace rknnd::soft
