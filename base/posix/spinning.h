// Waiting awake for a word that another CPU is about to write. Used by clients
// and workers, each with its own idea of when that is worth a CPU.

#ifndef BASE_POSIX_SPINNING_H_
#define BASE_POSIX_SPINNING_H_

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "base/posix/clock.h"

namespace rknnd::base {

// Tells the CPU that this is a loop that waits. (Cores of boards have one
// thread each, and take "yield" for nothing: there it only keeps the compiler
// from gathering looks.)
inline void Relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__) || defined(__arm__)
  asm volatile("yield" ::: "memory");
#endif
}

// CPUs that this thread may use; at least 1.
uint32_t UsableCpus();

// Calls `ready` until it is true, or `longest` is over. The time is looked at
// seldom: a look at it costs as much as some at a word.
template <class Ready>
bool SpinFor(const Clock& clock, Nanoseconds longest, Ready ready) {
  constexpr int kLooks = 16;
  Nanoseconds until = 0;
  for (;;) {
    for (int i = 0; i < kLooks; ++i) {
      if (ready()) return true;
      Relax();
    }
    const Nanoseconds now = clock.Now();
    if (until == 0) until = now + longest;
    if (now >= until) return false;
  }
}

// Where both ends have one CPU, nobody waits awake; who waits gives the CPU to
// the other end and stays ready to run, so that nobody need be woken. Others
// that want the CPU may keep it for long meanwhile: a sleeper that is woken
// comes before them, one that has yielded does not. After so long it was wrong.
inline constexpr Nanoseconds kLongYield = 50 * kMicrosecond;

// Times that it is given away for one thing: a fair scheduler may give it back
// at once, where the other end has had more of it of late.
inline constexpr int kYields = 3;

// Gives the CPU away until `ready` is true, a few times; whether it is.
template <class Ready>
bool YieldFor(Ready ready) {
  for (int i = 0; i < kYields; ++i) {
    sched_yield();
    if (ready()) return true;
  }
  return false;
}

// Whether waiting awake has paid off of late: after a few misses in a row it is
// tried less and less often, and at the first success as before.
// Thread: any; calls that meet cost a count, nothing else.
class SpinHabit {
 public:
  static constexpr uint32_t kMisses = 4;   // that cost nothing
  static constexpr uint32_t kRarest = 10;  // once in 2^kRarest times
  // What a success brings, two wake-ups that nobody waits for, and how much of
  // that may be saved up for losses.
  static constexpr Nanoseconds kGain = 5 * kMicrosecond;
  static constexpr Nanoseconds kMostSaved = 5 * kMillisecond;
  static constexpr uint32_t kStreak = 8;  // pauses in a row that double

  // Whether to try it this time.
  bool Try() {
    const uint32_t left = skip_.load(std::memory_order_relaxed);
    if (left == 0) return true;
    skip_.store(left - 1, std::memory_order_relaxed);
    return false;
  }
  // It took so long, far more than it can bring. As long as successes have
  // saved that up it goes on: others who want the CPU get it sooner or later,
  // and a pause puts that off only. Else there is a pause, of as many times as
  // would have to succeed, and twice as many after each such pause.
  void NoteLoss(Nanoseconds took) {
    const auto loss =
        static_cast<uint32_t>(std::clamp<Nanoseconds>(took, 0, kMostSaved));
    const uint32_t saved = saved_.load(std::memory_order_relaxed);
    if (saved >= loss) {
      saved_.store(saved - loss, std::memory_order_relaxed);
      return;
    }
    const uint32_t streak = streak_.load(std::memory_order_relaxed);
    skip_.store((loss / kGain + 1) << streak, std::memory_order_relaxed);
    streak_.store(std::min(streak + 1, kStreak), std::memory_order_relaxed);
    saved_.store(0, std::memory_order_relaxed);
  }
  void Note(bool paid_off) {
    if (paid_off) {
      const uint32_t saved = saved_.load(std::memory_order_relaxed);
      if (saved < kMostSaved) {
        saved_.store(saved + kGain, std::memory_order_relaxed);
      } else if (streak_.load(std::memory_order_relaxed) != 0) {
        streak_.store(0, std::memory_order_relaxed);
      }
      if (misses_.load(std::memory_order_relaxed) != 0) {
        misses_.store(0, std::memory_order_relaxed);
      }
      return;
    }
    const uint32_t misses = std::min(
        misses_.load(std::memory_order_relaxed) + 1, kMisses + kRarest);
    misses_.store(misses, std::memory_order_relaxed);
    if (misses > kMisses) {
      skip_.store((uint32_t{1} << (misses - kMisses)) - 1,
                  std::memory_order_relaxed);
    }
  }

 private:
  std::atomic<uint32_t> misses_{0}, skip_{0}, streak_{0};
  std::atomic<uint32_t> saved_{0};  // ns
};

}  // namespace rknnd::base

#endif  // BASE_POSIX_SPINNING_H_
