// How long a model's runs take on this device, as measured lately: what the
// scheduler charges in advance and what admission counts with. Written where
// jobs end, read by anybody.

#ifndef DAEMON_CORE_MODELS_RUN_TIMES_H_
#define DAEMON_CORE_MODELS_RUN_TIMES_H_

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/posix/clock.h"

namespace rknnd::core {

// Of one shape row of a model, by the number of cores that a run had. Thread:
// any; two that record at once may lose one of the two, which is one of many.
class RunTimes {
 public:
  void Record(uint32_t core_mask, base::Nanoseconds run) {
    auto& mean = Of(core_mask);
    const base::Nanoseconds old = mean.load(std::memory_order_relaxed);
    // The last eight weigh most: a clock that was turned down is seen within
    // half a second of a camera.
    mean.store(old == 0 ? run : old + (run - old) / 8,
               std::memory_order_relaxed);
  }
  // 0: never run on so many cores.
  [[nodiscard]] base::Nanoseconds measured(uint32_t core_mask) const {
    return Of(core_mask).load(std::memory_order_relaxed);
  }

 private:
  using Mean = std::atomic<base::Nanoseconds>;
  static constexpr size_t kMostCores = 8;  // more are told apart by no SoC

  static size_t Index(uint32_t core_mask) {
    const auto cores = static_cast<size_t>(std::popcount(core_mask));
    return cores == 0 ? 0 : (cores > kMostCores ? kMostCores : cores) - 1;
  }
  [[nodiscard]] const Mean& Of(uint32_t core_mask) const {
    return means_[Index(core_mask)];
  }
  Mean& Of(uint32_t core_mask) { return means_[Index(core_mask)]; }

  std::array<Mean, kMostCores> means_{};
};

}  // namespace rknnd::core

#endif  // DAEMON_CORE_MODELS_RUN_TIMES_H_
