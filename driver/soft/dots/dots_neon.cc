// Products of a row with columns with NEON.

#include "driver/soft/dots/dot_levels.h"
#include "driver/soft/dots/dot_loops.h"
#include "driver/soft/dots/neon_vectors.h"

namespace rknnd::soft {

constexpr DotKernels kDotsNeon = DotLoops<NeonDots>::Of("neon");

}  // namespace rknnd::soft
