// Products of bytes with SSE4.1, also for CPUs with AVX alone, which has no
// integers: activations as int16, weights widened as they are read, two
// products added at once.

#include <smmintrin.h>

#include "driver/soft/tiles/levels.h"
#include "driver/soft/tiles/row_loops.h"
#include "driver/soft/tiles/tile_loops.h"
#include "driver/soft/tiles/winograd_loops.h"

namespace rknnd::soft {
namespace {

struct Sse41 {
  static constexpr size_t kLanes = 4, kSums = 2, kGroups = 1, kPixels = 6;
  static constexpr TileForm kForm = TileForm::kWide;
  using Sum = __m128i;  // two of each of two channels
  using Weights = __m128i;
  using Values = __m128i;

  static Sum Zero() { return _mm_setzero_si128(); }
  static Weights LoadWeights(const std::byte* at, size_t s) {
    return _mm_cvtepi8_epi16(
        _mm_loadl_epi64(reinterpret_cast<const __m128i*>(at + s * 8)));
  }
  static Weights LoadWide(const int16_t* at, size_t s) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at + s * 8));
  }
  template <class Halves>
  static Halves WidenHalves(const std::byte* at) {
    return reinterpret_cast<Halves>(LoadWeights(at, 0));
  }
  static Values Broadcast(const std::byte* at) {
    // As a double: there is one instruction for it.
    double cell;
    std::memcpy(&cell, at, sizeof cell);
    return _mm_castpd_si128(_mm_set1_pd(cell));
  }
  static Sum Dot(Sum sum, Weights weights, Values values) {
    return _mm_add_epi32(sum, _mm_madd_epi16(weights, values));
  }
  template <class Ints>
  static Ints Join(const Sum* sums) {
    return reinterpret_cast<Ints>(_mm_hadd_epi32(sums[0], sums[1]));
  }
  template <class Ints>
  static Ints Widen(const std::byte* at) {
    return reinterpret_cast<Ints>(_mm_cvtepi8_epi32(_mm_loadu_si32(at)));
  }
  template <class Bytes, class Ints>
  static Bytes Narrow(const Ints& ints) {
    const __m128i lowest = _mm_setr_epi8(0, 4, 8, 12, -1, -1, -1, -1, -1, -1,
                                         -1, -1, -1, -1, -1, -1);
    const int32_t bytes = _mm_cvtsi128_si32(
        _mm_shuffle_epi8(reinterpret_cast<__m128i>(ints), lowest));
    return reinterpret_cast<Bytes>(bytes);
  }
};

struct FloatSse41 {
  static constexpr size_t kLanes = 4, kSums = 1, kGroups = 2, kPixels = 6;
  static constexpr size_t kRowOutputs = 4, kRowSums = 12;
  static constexpr TileForm kForm = TileForm::kFloat;
  using Sum = __m128;
  using Weights = __m128;
  using Values = __m128;

  static Sum Zero() { return _mm_setzero_ps(); }
  static Weights LoadWeights(const std::byte* at, size_t) {
    return _mm_loadu_ps(reinterpret_cast<const float*>(at));
  }
  static Values Broadcast(const std::byte* at) {
    return _mm_load1_ps(reinterpret_cast<const float*>(at));
  }
  static Sum Dot(Sum sum, Weights weights, Values values) {
    return _mm_add_ps(sum, _mm_mul_ps(weights, values));
  }
  template <class Floats>
  static Floats Join(const Sum* sums) {
    return reinterpret_cast<Floats>(sums[0]);
  }
};

}  // namespace

constexpr ByteKernels kBytesSse41 =
    TileLoops<Sse41>::OfBytes("sse41", &WinogradLoops<Sse41>::kKernels);
constexpr FloatKernels kFloatsSse41 = FloatKernelsOf<FloatSse41>("sse41");

}  // namespace rknnd::soft
