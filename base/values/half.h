// IEEE half precision (the NPU's float) to and from float32: exact for
// subnormals, infinities and NaN, rounding to nearest even. Used by devices
// and by the client library, on any thread.

#ifndef BASE_VALUES_HALF_H_
#define BASE_VALUES_HALF_H_

#include <cstddef>
#include <cstdint>
#include <span>

namespace rknnd::base {

// The bits of a half; arithmetic is done in float.
using Half = uint16_t;

[[nodiscard]] float HalfToFloat(Half half);
// Beyond the largest half (65504 plus half a step): infinity. A NaN stays one.
[[nodiscard]] Half FloatToHalf(float value);

// Converts min(from.size(), to.size()) elements, by the CPU's own instructions
// where it has them; same results as one by one. The spans do not overlap.
void HalfToFloat(std::span<const Half> from, std::span<float> to);
void FloatToHalf(std::span<const float> from, std::span<Half> to);

}  // namespace rknnd::base

#endif  // BASE_VALUES_HALF_H_
