// Vectors of eight floats, as tile_loops.h wants them of a level: all but Dot,
// which CPUs with AVX2 do in one instruction. `Own` is the level's own type,
// local to the file that is compiled for that CPU, and so is what comes of it.

#ifndef DRIVER_SOFT_TILES_AVX_FLOATS_H_
#define DRIVER_SOFT_TILES_AVX_FLOATS_H_

#include <immintrin.h>

#include <cstddef>

#include "driver/soft/tiles/tile_kernels.h"

namespace rknnd::soft {

template <class Own>
struct AvxFloats {
  static constexpr size_t kLanes = 8, kSums = 1, kGroups = 2, kPixels = 6;
  static constexpr size_t kRowOutputs = 4, kRowSums = 12;
  static constexpr TileForm kForm = TileForm::kFloat;
  using Sum = __m256;
  using Weights = __m256;
  using Values = __m256;

  static Sum Zero() { return _mm256_setzero_ps(); }
  static Weights LoadWeights(const std::byte* at, size_t) {
    return _mm256_loadu_ps(reinterpret_cast<const float*>(at));
  }
  static Values Broadcast(const std::byte* at) {
    return _mm256_broadcast_ss(reinterpret_cast<const float*>(at));
  }
  template <class Floats>
  static Floats Join(const Sum* sums) {
    return reinterpret_cast<Floats>(sums[0]);
  }
};

}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_TILES_AVX_FLOATS_H_
