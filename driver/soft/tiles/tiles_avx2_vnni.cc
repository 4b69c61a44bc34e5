// Products of bytes with AVX-VNNI: four at once, unsigned activations by signed
// weights, without saturation on the way.

#include <immintrin.h>

#include "driver/soft/tiles/levels.h"
#include "driver/soft/tiles/tile_loops.h"

namespace rknnd::soft {
namespace {

struct Avx2Vnni {
  static constexpr size_t kLanes = 8, kSums = 1, kGroups = 2, kPixels = 6;
  static constexpr TileForm kForm = TileForm::kUnsigned;
  using Sum = __m256i;
  using Weights = __m256i;
  using Values = __m256i;

  static Sum Zero() { return _mm256_setzero_si256(); }
  static Weights LoadWeights(const std::byte* at, size_t) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at));
  }
  static Values Broadcast(const std::byte* at) {
    return _mm256_castps_si256(
        _mm256_broadcast_ss(reinterpret_cast<const float*>(at)));
  }
  static Sum Dot(Sum sum, Weights weights, Values values) {
    // g++ 12 copies each sum around the intrinsic of the same name.
    asm("%{vex%} vpdpbusd %2, %1, %0" : "+x"(sum) : "x"(values), "x"(weights));
    return sum;
  }
  template <class Ints>
  static Ints Join(const Sum* sums) {
    return reinterpret_cast<Ints>(sums[0]);
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

}  // namespace

constexpr ByteKernels kBytesAvx2Vnni =
    TileLoops<Avx2Vnni>::OfBytes("avx2_vnni");

}  // namespace rknnd::soft
