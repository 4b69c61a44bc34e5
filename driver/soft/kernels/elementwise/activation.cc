// See activation.h. The loops are compiled once for each CPU generation and
// chosen when a kernel is made; all of a run is one instruction set, so that
// equal inputs give equal outputs.

#include "driver/soft/kernels/elementwise/activation.h"

#include <bit>
#include <cmath>
#include <cstdint>

#include "driver/soft/tiles/cpu_level.h"

namespace rknnd::soft {
namespace {

#define RKNND_INLINE inline __attribute__((always_inline))

// Not more, and not less, than `bound`. What is not a number stays so, as ONNX
// has it; written so that a compiler makes one instruction of each.
RKNND_INLINE float Least(float x, float bound) { return x > bound ? bound : x; }
RKNND_INLINE float Most(float x, float bound) { return x < bound ? bound : x; }

constexpr float kLog2E = 1.44269504F;

// e^r of x = n ln 2 + r, n being the nearest integer: a polynomial, its largest
// relative error 1e-7.
RKNND_INLINE float ExpOfRest(float x, float n) {
  constexpr float kLn2High = 0.693359375F, kLn2Low = -2.12194440e-4F;
  const float r = (x - n * kLn2High) - n * kLn2Low;
  float p = 1.9875691500e-4F;
  p = p * r + 1.3981999507e-3F;
  p = p * r + 8.3334519073e-3F;
  p = p * r + 4.1665795894e-2F;
  p = p * r + 1.6666665459e-1F;
  p = p * r + 5.0000001201e-1F;
  return p * r * r + r + 1.0F;
}

// e^x, 2^n in two factors so that the ends of the range come out as 0 and
// infinity.
RKNND_INLINE float Exp(float x) {
  constexpr float kRound = 12582912.0F;  // 1.5 * 2^23: adding it rounds
  // Also of what is no number, which has no n.
  const float below = x < 89.0F ? x : 89.0F;
  const float bounded = Most(below, -104.0F);
  const float n = (bounded * kLog2E + kRound) - kRound;
  const float p = ExpOfRest(bounded, n);
  const auto whole = static_cast<int32_t>(n);
  const int32_t half = whole >> 1;
  const float first = std::bit_cast<float>((half + 127) << 23);
  const float second = std::bit_cast<float>((whole - half + 127) << 23);
  const float result = p * first * second;
  return x == x ? result : x;
}

// e^x where it is only added to something: bounded to 4e-38 and 2e37, so that
// one factor holds 2^n. What is not a number stays so.
RKNND_INLINE float BoundedExp(float x) {
  constexpr float kBound = 86.0F;
  // Rounds, as above, and leaves n in the place of an exponent, shifted.
  constexpr float kRound = 12582912.0F + 127.0F;
  constexpr int kExponent = 23;
  const float below = x > kBound ? kBound : x;
  const float bounded = below < -kBound ? -kBound : below;
  const float shifted = bounded * kLog2E + kRound;
  const float n = shifted - kRound;
  const float p = ExpOfRest(bounded, n);
  return p *
         std::bit_cast<float>(std::bit_cast<uint32_t>(shifted) << kExponent);
}

// 1 / x of x from 1 to 4e37. Divisions of the widest vectors take as long as
// all else here: in their place a first guess (error 0.12) out of the exponent,
// and twice the step that leaves the third power of the error.
template <bool kDivides>
RKNND_INLINE float Inverse(float x) {
  if (kDivides) return 1.0F / x;
  float y = std::bit_cast<float>(0x7EF311C7U - std::bit_cast<uint32_t>(x));
  float error = 1.0F - x * y;
  y = y * (error * error + error) + y;
  error = 1.0F - x * y;
  return y * (error * error + error) + y;
}

template <bool kDivides>
RKNND_INLINE float SigmoidOf(float x) {
  return Inverse<kDivides>(1.0F + BoundedExp(-x));
}

// Small arguments by a polynomial: 1 - 2 / (1 + e^2x) would cancel there.
template <bool kDivides>
RKNND_INLINE float TanhOf(float x) {
  const float square = x * x;
  float p = -5.70498872745e-3F;
  p = p * square + 2.06390887954e-2F;
  p = p * square - 5.37397155531e-2F;
  p = p * square + 1.33314422036e-1F;
  p = p * square - 3.33332819422e-1F;
  const float small = p * square * x + x;
  const float large =
      1.0F - 2.0F * Inverse<kDivides>(1.0F + BoundedExp(2.0F * x));
  return square < 0.390625F ? small : large;
}

// Small arguments by the series, which keeps their relative error; others by
// Abramowitz and Stegun's formula 7.1.26. Largest error 2e-7.
template <bool kDivides>
RKNND_INLINE float ErfOf(float x) {
  const float square = x * x;
  float s = 1.6462114e-6F;
  s = s * square - 1.4925650e-5F;
  s = s * square + 1.2055333e-4F;
  s = s * square - 8.5483270e-4F;
  s = s * square + 5.2239776e-3F;
  s = s * square - 2.6866171e-2F;
  s = s * square + 1.1283792e-1F;
  s = s * square - 3.7612639e-1F;
  s = s * square + 1.1283792F;
  const float small = s * x;
  const float magnitude = std::fabs(x);
  const float t =
      Inverse<kDivides>(1.0F + 0.3275911F * Least(magnitude, 100.0F));
  float p = 1.061405429F;
  p = p * t - 1.453152027F;
  p = p * t + 1.421413741F;
  p = p * t - 0.284496736F;
  p = p * t + 0.254829592F;
  const float large = std::copysign(1.0F - p * t * BoundedExp(-square), x);
  return square < 1.0F ? small : large;
}

template <bool kDivides>
RKNND_INLINE float GeluOf(float x) {
  return 0.5F * x * (1.0F + ErfOf<kDivides>(x * 0.70710678F));
}

// 0.5 * (1 + Tanh(y)) is Sigmoid(2 * y).
template <bool kDivides>
RKNND_INLINE float GeluTanhOf(float x) {
  constexpr float kTwice = 2.0F * 0.79788456F;
  return x * SigmoidOf<kDivides>((kTwice * 0.044715F * x * x + kTwice) * x);
}

#define RKNND_LOOP(name, attribute, expression)               \
  attribute void name(const float* in, float* out, int64_t n, \
                      [[maybe_unused]] float alpha,           \
                      [[maybe_unused]] float beta) {          \
    for (int64_t i = 0; i < n; ++i) {                         \
      const float x = in[i];                                  \
      out[i] = (expression);                                  \
    }                                                         \
  }

#define RKNND_LOOPS(suffix, attribute, divides)                              \
  RKNND_LOOP(Relu##suffix, attribute, x < 0.0F ? 0.0F : x)                   \
  RKNND_LOOP(LeakyRelu##suffix, attribute, x < 0.0F ? x * alpha : x)         \
  RKNND_LOOP(Clip##suffix, attribute, Least(Most(x, alpha), beta))           \
  RKNND_LOOP(Sigmoid##suffix, attribute, SigmoidOf<divides>(x))              \
  RKNND_LOOP(Tanh##suffix, attribute, TanhOf<divides>(x))                    \
  RKNND_LOOP(HardSigmoid##suffix, attribute,                                 \
             Least(Most(alpha* x + beta, 0.0F), 1.0F))                       \
  RKNND_LOOP(HardSwish##suffix, attribute,                                   \
             x* Least(Most(x*(1.0F / 6.0F) + 0.5F, 0.0F), 1.0F))             \
  RKNND_LOOP(Swish##suffix, attribute, x* SigmoidOf<divides>(x))             \
  RKNND_LOOP(Gelu##suffix, attribute, GeluOf<divides>(x))                    \
  RKNND_LOOP(GeluTanh##suffix, attribute, GeluTanhOf<divides>(x))            \
  RKNND_LOOP(Exp##suffix, attribute, Exp(x))                                 \
  RKNND_LOOP(Erf##suffix, attribute, ErfOf<divides>(x))                      \
  constexpr FloatLoop kLoops##suffix[] = {                                   \
      nullptr,         Relu##suffix, LeakyRelu##suffix,   Clip##suffix,      \
      Sigmoid##suffix, Tanh##suffix, HardSigmoid##suffix, HardSwish##suffix, \
      Swish##suffix,   Gelu##suffix, GeluTanh##suffix,    Exp##suffix,       \
      Erf##suffix};

RKNND_LOOPS(Base, , true)
#if defined(__x86_64__)
RKNND_LOOPS(Avx2, __attribute__((target("avx2,fma"))), true)
RKNND_LOOPS(Avx512,
            __attribute__((target("avx512f,avx512dq,avx512vl,avx2,fma"))),
            false)
#endif

constexpr size_t kExp = static_cast<size_t>(Activation::kGeluTanh) + 1;
constexpr size_t kErf = kExp + 1;

FloatLoop Pick(size_t index) {
  switch (CurrentCpuLevel()) {
#if defined(__x86_64__)
    case CpuLevel::kAvx512:
    case CpuLevel::kAvx512Vnni:
      return kLoopsAvx512[index];
    case CpuLevel::kAvx2:
    case CpuLevel::kAvx2Vnni:
      return kLoopsAvx2[index];
#endif
    default:
      return kLoopsBase[index];
  }
}

}  // namespace

FloatLoop LoopOf(Activation activation) {
  return Pick(static_cast<size_t>(activation));
}

FloatLoop ExpLoop() { return Pick(kExp); }
FloatLoop ErfLoop() { return Pick(kErf); }

bool KeepsZero(Activation activation, float alpha, float beta) {
  switch (activation) {
    case Activation::kSigmoid:
      return false;
    case Activation::kHardSigmoid:
      return beta <= 0.0F;
    case Activation::kClip:
      return alpha <= 0.0F && beta >= 0.0F;
    default:
      return true;
  }
}

}  // namespace rknnd::soft
