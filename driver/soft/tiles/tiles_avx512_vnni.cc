// Products of bytes with AVX-512 VNNI: four at once, unsigned activations by
// signed weights, without saturation on the way.

#include <immintrin.h>

#include "driver/soft/tiles/levels.h"
#include "driver/soft/tiles/tile_loops.h"

namespace rknnd::soft {
namespace {

struct Avx512Vnni {
  static constexpr size_t kLanes = 16, kSums = 1, kGroups = 2, kPixels = 8;
  static constexpr TileForm kForm = TileForm::kUnsigned;
  using Sum = __m512i;
  using Weights = __m512i;
  using Values = __m512i;

  static Sum Zero() { return _mm512_setzero_si512(); }
  static Weights LoadWeights(const std::byte* at, size_t) {
    return _mm512_loadu_si512(at);
  }
  static Values Broadcast(const std::byte* at) {
    return _mm512_broadcastd_epi32(_mm_loadu_si32(at));
  }
  static Sum Dot(Sum sum, Weights weights, Values values) {
    // g++ 12 copies each sum around the intrinsic of the same name.
    asm("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(values), "v"(weights));
    return sum;
  }
  template <class Ints>
  static Ints Join(const Sum* sums) {
    return reinterpret_cast<Ints>(sums[0]);
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

}  // namespace

constexpr ByteKernels kBytesAvx512Vnni =
    TileLoops<Avx512Vnni>::OfBytes("avx512_vnni");

}  // namespace rknnd::soft
