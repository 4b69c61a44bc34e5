// Vectors of 256 and 512 bits for the loops of x86 levels: what two levels of
// one width share, which differ in how they multiply. Included by the
// kernels_*.cc of these levels only.
//
// Templates of the level, whose type no other file has: each file has copies of
// its own, compiled for its CPU.

#ifndef DRIVER_RKNPU_EMULATOR_KERNELS_VECTORS_X86_H_
#define DRIVER_RKNPU_EMULATOR_KERNELS_VECTORS_X86_H_

#include <immintrin.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace rknnd::rknpu::fast {

template <class Level>
struct Vectors256 {
  static constexpr size_t kBlock = 16, kVectors = 2, kPixels = 6;
  using Sum = __m256i;
  using Weights = __m256i;
  using Values = __m256i;

  static Sum Zero() { return _mm256_setzero_si256(); }
  static Weights LoadWeights(const std::byte* at, size_t v) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at) + v);
  }
  static Values Broadcast(const std::byte* at) {
    int32_t cell;
    std::memcpy(&cell, at, sizeof(cell));
    return _mm256_set1_epi32(cell);
  }
  static void Store(Sum sum, int32_t* to) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), sum);
  }
};

#ifdef __AVX512F__
template <class Level>
struct Vectors512 {
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
  static void Store(Sum sum, int32_t* to) {
    _mm512_storeu_si512(reinterpret_cast<__m512i*>(to), sum);
  }
};
#endif

}  // namespace rknnd::rknpu::fast

#endif  // DRIVER_RKNPU_EMULATOR_KERNELS_VECTORS_X86_H_
