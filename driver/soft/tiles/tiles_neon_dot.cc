// Products of bytes with the dot product of ARMv8.2: four at once, both signed.

#include <arm_neon.h>

#include "driver/soft/tiles/levels.h"
#include "driver/soft/tiles/tile_loops.h"

namespace rknnd::soft {
namespace {

struct NeonDot {
  static constexpr size_t kLanes = 4, kSums = 1, kGroups = 4, kPixels = 6;
  static constexpr TileForm kForm = TileForm::kSigned;
  using Sum = int32x4_t;
  using Weights = int8x16_t;
  using Values = int8x16_t;

  static Sum Zero() { return vdupq_n_s32(0); }
  static Weights LoadWeights(const std::byte* at, size_t) {
    return vld1q_s8(reinterpret_cast<const int8_t*>(at));
  }
  static Values Broadcast(const std::byte* at) {
    int32_t cell;
    std::memcpy(&cell, at, sizeof cell);
    return vreinterpretq_s8_s32(vdupq_n_s32(cell));
  }
  static Sum Dot(Sum sum, Weights weights, Values values) {
    return vdotq_s32(sum, weights, values);
  }
  template <class Ints>
  static Ints Join(const Sum* sums) {
    return reinterpret_cast<Ints>(sums[0]);
  }
  template <class Ints>
  static Ints Widen(const std::byte* at) {
    int32_t four;
    std::memcpy(&four, at, sizeof four);
    const int8x8_t bytes = vreinterpret_s8_s32(vdup_n_s32(four));
    return reinterpret_cast<Ints>(vmovl_s16(vget_low_s16(vmovl_s8(bytes))));
  }
  template <class Bytes, class Ints>
  static Bytes Narrow(const Ints& ints) {
    const int16x4_t halves = vmovn_s32(reinterpret_cast<int32x4_t>(ints));
    const int8x8_t bytes = vmovn_s16(vcombine_s16(halves, halves));
    return reinterpret_cast<Bytes>(
        vget_lane_s32(vreinterpret_s32_s8(bytes), 0));
  }
};

}  // namespace

constexpr ByteKernels kBytesNeonDot = TileLoops<NeonDot>::OfBytes("neon_dot");

}  // namespace rknnd::soft
