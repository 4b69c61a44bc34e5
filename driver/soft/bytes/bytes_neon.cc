// Products of bytes with NEON: activations as int16, weights widened as they
// are read, four products of one channel at once.

#include <arm_neon.h>

#include "driver/soft/bytes/byte_loops.h"
#include "driver/soft/bytes/levels.h"

namespace rknnd::soft {
namespace {

struct Neon {
  static constexpr size_t kLanes = 4, kSums = 4, kGroups = 1, kPixels = 6;
  static constexpr ByteForm kForm = ByteForm::kWide;
  using Sum = int32x4_t;  // four of one channel
  using Weights = int16x4_t;
  using Values = int16x4_t;

  static Sum Zero() { return vdupq_n_s32(0); }
  static Weights LoadWeights(const int8_t* at, size_t s) {
    const int16x8_t wide = vmovl_s8(vld1_s8(at + s / 2 * 8));
    return s % 2 == 0 ? vget_low_s16(wide) : vget_high_s16(wide);
  }
  static Values Broadcast(const std::byte* at) {
    return vld1_s16(reinterpret_cast<const int16_t*>(at));
  }
  static Sum Dot(Sum sum, Weights weights, Values values) {
    return vmlal_s16(sum, weights, values);
  }
  template <class Ints>
  static Ints Join(const Sum* sums) {
    return reinterpret_cast<Ints>(
        vpaddq_s32(vpaddq_s32(sums[0], sums[1]), vpaddq_s32(sums[2], sums[3])));
  }
  template <class Ints>
  static Ints Widen(const int8_t* at) {
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

constexpr ByteKernels kBytesNeon = ByteLoops<Neon>::Kernels("neon");

}  // namespace rknnd::soft
