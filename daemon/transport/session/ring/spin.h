// When a worker waits awake instead of asleep, and at which rings it looks
// meanwhile. Waiting awake takes two wake-ups out of a frame's way; it costs a
// CPU. So it is one worker at most, never the last that could sleep, for a
// bounded time, and seldom when it does not pay off. With one CPU it costs
// nothing: the worker gives that away, a few times (kYields).

#ifndef DAEMON_TRANSPORT_SESSION_RING_SPIN_H_
#define DAEMON_TRANSPORT_SESSION_RING_SPIN_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/posix/clock.h"
#include "base/posix/spinning.h"

namespace rknnd::transport {

// The rings that one worker has served last, the latest first.
// Thread: its worker.
class RecentRings {
 public:
  // Cameras of one program share a ring; looking at more costs each of them.
  static constexpr size_t kRings = 4;

  void Note(uint64_t number) {
    // All before it make room, up to where it stood.
    for (uint64_t& ring : rings_) {
      std::swap(ring, number);
      if (number == rings_[0]) return;
    }
  }
  [[nodiscard]] const std::array<uint64_t, kRings>& rings() const {
    return rings_;
  }

 private:
  std::array<uint64_t, kRings> rings_{};  // 0: none
};

// Thread: any.
class Spin {
 public:
  Spin(base::Nanoseconds longest, bool one_cpu)
      : longest_(one_cpu ? 0 : longest), one_cpu_(one_cpu) {}

  // 0: nobody waits awake.
  [[nodiscard]] base::Nanoseconds longest() const { return longest_; }
  [[nodiscard]] bool one_cpu() const { return one_cpu_; }

  // Around a worker's sleep.
  void BeginSleep() { asleep_.fetch_add(1, std::memory_order_relaxed); }
  void EndSleep() { asleep_.fetch_sub(1, std::memory_order_relaxed); }
  // Somebody sleeps, and would hear of what one that stays awake does not look
  // at. There is one worker more than cores, so that a core is idle then.
  [[nodiscard]] bool MayGoOn() const {
    return asleep_.load(std::memory_order_relaxed) != 0 &&
           !stopped_.load(std::memory_order_relaxed);
  }
  // The end: workers are to sleep, where they are told.
  void Stop() { stopped_.store(true, std::memory_order_relaxed); }

  // Whether the caller is to wait awake now; then it calls End.
  bool Begin() {
    if (!enabled() || !MayGoOn()) return false;
    if (taken_.load(std::memory_order_relaxed) ||
        taken_.exchange(true, std::memory_order_acquire)) {
      return false;
    }
    if (habit_.Try()) return true;
    taken_.store(false, std::memory_order_release);
    return false;
  }
  // `lost`: so long an entry that came may have waited: where the CPU was
  // somebody else's, who may be no client of ours at all. 0: not at all.
  void End(bool caught, base::Nanoseconds lost) {
    if (lost != 0) {
      habit_.NoteLoss(lost);
    } else {
      habit_.Note(caught);
    }
    taken_.store(false, std::memory_order_release);
  }

 private:
  [[nodiscard]] bool enabled() const { return longest_ != 0 || one_cpu_; }

  const base::Nanoseconds longest_;
  const bool one_cpu_;
  std::atomic<uint32_t> asleep_{0};
  std::atomic<bool> taken_{false}, stopped_{false};
  base::SpinHabit habit_;
};

}  // namespace rknnd::transport

#endif  // DAEMON_TRANSPORT_SESSION_RING_SPIN_H_
