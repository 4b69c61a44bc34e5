// Products of bytes with NEON: activations as int16, weights widened as they
// are read, four products of one channel at once.

#include <arm_neon.h>

#include "driver/soft/tiles/levels.h"
#include "driver/soft/tiles/row_loops.h"
#include "driver/soft/tiles/tile_loops.h"
#include "driver/soft/tiles/winograd_loops.h"

namespace rknnd::soft {
namespace {

struct Neon {
  static constexpr size_t kLanes = 4, kSums = 4, kGroups = 1, kPixels = 6;
  static constexpr TileForm kForm = TileForm::kWide;
  using Sum = int32x4_t;  // four of one channel
  using Weights = int16x4_t;
  using Values = int16x4_t;

  static Sum Zero() { return vdupq_n_s32(0); }
  static Weights LoadWeights(const std::byte* at, size_t s) {
    const int16x8_t wide =
        vmovl_s8(vld1_s8(reinterpret_cast<const int8_t*>(at + s / 2 * 8)));
    return s % 2 == 0 ? vget_low_s16(wide) : vget_high_s16(wide);
  }
  static Weights LoadWide(const int16_t* at, size_t s) {
    return vld1_s16(at + s * 4);
  }
  template <class Halves>
  static Halves WidenHalves(const std::byte* at) {
    return reinterpret_cast<Halves>(
        vmovl_s8(vld1_s8(reinterpret_cast<const int8_t*>(at))));
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

struct FloatNeon {
  static constexpr size_t kLanes = 4, kSums = 1, kGroups = 4, kPixels = 6;
  static constexpr size_t kRowOutputs = 8, kRowSums = 24;
  static constexpr TileForm kForm = TileForm::kFloat;
  using Sum = float32x4_t;
  using Weights = float32x4_t;
  using Values = float32x4_t;

  static Sum Zero() { return vdupq_n_f32(0.0F); }
  static Weights LoadWeights(const std::byte* at, size_t) {
    return vld1q_f32(reinterpret_cast<const float*>(at));
  }
  static Values Broadcast(const std::byte* at) {
    return vld1q_dup_f32(reinterpret_cast<const float*>(at));
  }
  static Sum Dot(Sum sum, Weights weights, Values values) {
    return vfmaq_f32(sum, weights, values);
  }
  template <class Floats>
  static Floats Join(const Sum* sums) {
    return reinterpret_cast<Floats>(sums[0]);
  }
};

}  // namespace

constexpr ByteKernels kBytesNeon =
    TileLoops<Neon>::OfBytes("neon", &WinogradLoops<Neon>::kKernels);
constexpr FloatKernels kFloatsNeon = FloatKernelsOf<FloatNeon>("neon");

}  // namespace rknnd::soft
