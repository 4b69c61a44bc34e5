// Products of a row with columns with the dot product of ARMv8.2.

#include "driver/soft/dots/dot_levels.h"
#include "driver/soft/dots/dot_loops.h"
#include "driver/soft/dots/neon_vectors.h"

namespace rknnd::soft {
namespace {

struct NeonDotDots : NeonDots {
  static Ints Bytes(Ints sum, const std::byte* column, const std::byte* row) {
    sum = vdotq_s32(sum, Load(column), Load(row));
    return vdotq_s32(sum, Load(column + 16), Load(row + 16));
  }
  static Ints Pairs(Ints sum, const std::byte* column, const std::byte* row) {
    sum = vdotq_s32(sum, Even(column), Load(row));
    return vdotq_s32(sum, Odd(column), Load(row + 16));
  }
};

}  // namespace

constexpr DotKernels kDotsNeonDot = DotLoops<NeonDotDots>::Of("neon_dot");

}  // namespace rknnd::soft
