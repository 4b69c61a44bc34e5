// Products of bytes with SSE4.1, also for CPUs with AVX alone, which has no
// integers: activations as int16, weights widened as they are read, two
// products added at once.

#include <smmintrin.h>

#include "driver/soft/bytes/byte_loops.h"
#include "driver/soft/bytes/levels.h"

namespace rknnd::soft {
namespace {

struct Sse41 {
  static constexpr size_t kLanes = 4, kSums = 2, kGroups = 1, kPixels = 6;
  static constexpr ByteForm kForm = ByteForm::kWide;
  using Sum = __m128i;  // two of each of two channels
  using Weights = __m128i;
  using Values = __m128i;

  static Sum Zero() { return _mm_setzero_si128(); }
  static Weights LoadWeights(const int8_t* at, size_t s) {
    return _mm_cvtepi8_epi16(
        _mm_loadl_epi64(reinterpret_cast<const __m128i*>(at + s * 8)));
  }
  static Values Broadcast(const std::byte* at) {
    return _mm_castpd_si128(
        _mm_loaddup_pd(reinterpret_cast<const double*>(at)));
  }
  static Sum Dot(Sum sum, Weights weights, Values values) {
    return _mm_add_epi32(sum, _mm_madd_epi16(weights, values));
  }
  template <class Ints>
  static Ints Join(const Sum* sums) {
    return reinterpret_cast<Ints>(_mm_hadd_epi32(sums[0], sums[1]));
  }
  template <class Ints>
  static Ints Widen(const int8_t* at) {
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

}  // namespace

constexpr ByteKernels kBytesSse41 = ByteLoops<Sse41>::Kernels("sse41");

}  // namespace rknnd::soft
