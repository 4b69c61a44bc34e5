// Half precision in integer arithmetic, and by F16C or AArch64 instructions
// where there are any. Any bit pattern is a valid argument.

#include "base/values/half.h"

#include <algorithm>
#include <bit>

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace rknnd::base {
namespace {

constexpr uint32_t kFloatInfinity = 0x7f800000;
constexpr Half kHalfInfinity = 0x7c00;
constexpr Half kHalfQuietBit = 0x0200;
// The exponent biases differ by 127 - 15.
constexpr uint32_t kRebias = 112;
// 2^-14, the smallest normal half, and 2^16, from which on all is infinite.
constexpr uint32_t kSmallestNormal = (kRebias + 1) << 23;
constexpr uint32_t kBeyondHalf = 143u << 23;

void HalfToFloatScalar(const Half* from, float* to, size_t count) {
  for (size_t i = 0; i < count; ++i) to[i] = HalfToFloat(from[i]);
}

void FloatToHalfScalar(const float* from, Half* to, size_t count) {
  for (size_t i = 0; i < count; ++i) to[i] = FloatToHalf(from[i]);
}

#if defined(__x86_64__) || defined(__i386__)

bool HasInstructions() {
  // clang 14 does not know "f16c" as a name. "avx" includes the kernel's leave
  // to use the registers.
  static const bool has = [] {
    unsigned a = 0;
    unsigned b = 0;
    unsigned c = 0;
    unsigned d = 0;
    return __builtin_cpu_supports("avx") != 0 &&
           __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
  }();
  return has;
}

__attribute__((target("avx,f16c"))) void HalfToFloatBulk(const Half* from,
                                                         float* to,
                                                         size_t count) {
  size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const __m128i halves =
        _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i));
    _mm256_storeu_ps(to + i, _mm256_cvtph_ps(halves));
  }
  HalfToFloatScalar(from + i, to + i, count - i);
}

__attribute__((target("avx,f16c"))) void FloatToHalfBulk(const float* from,
                                                         Half* to,
                                                         size_t count) {
  size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const __m128i halves =
        _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i), halves);
  }
  FloatToHalfScalar(from + i, to + i, count - i);
}

#elif defined(__aarch64__)

bool HasInstructions() { return true; }

void HalfToFloatBulk(const Half* from, float* to, size_t count) {
  for (size_t i = 0; i < count; ++i) to[i] = std::bit_cast<__fp16>(from[i]);
}

void FloatToHalfBulk(const float* from, Half* to, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    to[i] = std::bit_cast<Half>(static_cast<__fp16>(from[i]));
  }
}

#else

bool HasInstructions() { return false; }
void HalfToFloatBulk(const Half* from, float* to, size_t count) {
  HalfToFloatScalar(from, to, count);
}
void FloatToHalfBulk(const float* from, Half* to, size_t count) {
  FloatToHalfScalar(from, to, count);
}

#endif

}  // namespace

float HalfToFloat(Half half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000) << 16;
  const uint32_t exponent = (half >> 10) & 31;
  uint32_t fraction = half & 0x03ff;
  if (exponent == 31) {
    // Quieted, as the CPU's instructions do.
    if (fraction != 0) fraction |= kHalfQuietBit;
    return std::bit_cast<float>(sign | kFloatInfinity | fraction << 13);
  }
  if (exponent != 0) {
    return std::bit_cast<float>(sign | (exponent + kRebias) << 23 |
                                fraction << 13);
  }
  if (fraction == 0) return std::bit_cast<float>(sign);
  // Subnormal: a normal float once its leading bit is the implicit one.
  const int shift = std::countl_zero(fraction) - 21;
  return std::bit_cast<float>(
      sign | (kRebias + 1 - static_cast<uint32_t>(shift)) << 23 |
      ((fraction << shift) & 0x03ff) << 13);
}

Half FloatToHalf(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<Half>((bits >> 16) & 0x8000);
  const uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > kFloatInfinity) {
    return static_cast<Half>(sign | kHalfInfinity | kHalfQuietBit |
                             ((magnitude >> 13) & 0x03ff));
  }
  if (magnitude >= kBeyondHalf) {
    return static_cast<Half>(sign | kHalfInfinity);
  }
  if (magnitude >= kSmallestNormal) {
    // Half a step less one, plus the lowest kept bit: ties go to even. A carry
    // into the exponent is right, up to infinity.
    const uint32_t rebiased = magnitude - (kRebias << 23);
    const uint32_t rounded = rebiased + 0x0fff + ((rebiased >> 13) & 1);
    return static_cast<Half>(sign | rounded >> 13);
  }
  // Subnormal, or too small: shift the fraction with its implicit bit into
  // units of 2^-24.
  const uint32_t exponent = magnitude >> 23;
  if (exponent < kRebias - 10) return sign;  // below half of 2^-24
  const uint32_t fraction = (magnitude & 0x007fffff) | 0x00800000;
  const uint32_t shift = kRebias + 14 - exponent;
  const uint32_t half_step = (1u << (shift - 1)) - 1;
  const uint32_t rounded = fraction + half_step + ((fraction >> shift) & 1);
  return static_cast<Half>(sign | rounded >> shift);
}

void HalfToFloat(std::span<const Half> from, std::span<float> to) {
  const size_t count = std::min(from.size(), to.size());
  if (HasInstructions()) {
    HalfToFloatBulk(from.data(), to.data(), count);
  } else {
    HalfToFloatScalar(from.data(), to.data(), count);
  }
}

void FloatToHalf(std::span<const float> from, std::span<Half> to) {
  const size_t count = std::min(from.size(), to.size());
  if (HasInstructions()) {
    FloatToHalfBulk(from.data(), to.data(), count);
  } else {
    FloatToHalfScalar(from.data(), to.data(), count);
  }
}

}  // namespace rknnd::base
