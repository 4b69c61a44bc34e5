// Products of a row with columns with AVX2.

#include "driver/soft/dots/avx2_vectors.h"
#include "driver/soft/dots/dot_levels.h"
#include "driver/soft/dots/dot_loops.h"

namespace rknnd::soft {

constexpr DotKernels kDotsAvx2 = DotLoops<Avx2Dots>::Of("avx2");

}  // namespace rknnd::soft
