// Products of floats with AVX, which has no vectors of 256 bits for integers:
// bytes stay with SSE4.1.

#include "driver/soft/tiles/avx_floats.h"
#include "driver/soft/tiles/levels.h"
#include "driver/soft/tiles/row_loops.h"
#include "driver/soft/tiles/tile_loops.h"

namespace rknnd::soft {
namespace {

struct FloatAvx : AvxFloats<FloatAvx> {
  static Sum Dot(Sum sum, Weights weights, Values values) {
    return _mm256_add_ps(sum, _mm256_mul_ps(weights, values));
  }
};

}  // namespace

constexpr FloatKernels kFloatsAvx = FloatKernelsOf<FloatAvx>("avx");

}  // namespace rknnd::soft
