// AVX2 with dot products of bytes.

#include <immintrin.h>

#include "driver/rknpu/emulator/kernels/levels.h"
#include "driver/rknpu/emulator/kernels/loops.h"

namespace rknnd::rknpu::fast {
namespace {

struct Avx2Vnni {
  static constexpr Form kForm = Form::kUnsigned;
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
  static Sum Dot(Sum sum, Weights weights, Values values) {
    return _mm256_dpbusd_avx_epi32(sum, weights, values);
  }
  static void Store(Sum sum, int32_t* to) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), sum);
  }
};

}  // namespace

const Kernels kAvx2VnniKernels = Loops<Avx2Vnni>::All("avx2_vnni");

}  // namespace rknnd::rknpu::fast
