// Numbers that look drawn by lot and are the same on every machine, which the
// standard library's distributions are not. Used by everything that draws.

#ifndef EXAMPLES_DETECTOR_RANDOM_H_
#define EXAMPLES_DETECTOR_RANDOM_H_

#include <cstdint>

namespace rknnd::detector {

// splitmix64. Thread: any, one at a time.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t Next() {
    uint64_t z = (state_ += 0x9E3779B97F4A7C15U);
    z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27U)) * 0x94D049BB133111EBU;
    return z ^ (z >> 31U);
  }

  // In [from, to).
  double Uniform(double from, double to) {
    constexpr double kUnit = 1.0 / 9007199254740992.0;  // 2^-53
    return from + (to - from) * static_cast<double>(Next() >> 11U) * kUnit;
  }

  // In [from, to], both included.
  int Integer(int from, int to) {
    return from +
           static_cast<int>(Next() % static_cast<uint64_t>(to - from + 1));
  }

  bool Chance(double p) { return Uniform(0, 1) < p; }

 private:
  uint64_t state_;
};

}  // namespace rknnd::detector

#endif  // EXAMPLES_DETECTOR_RANDOM_H_
