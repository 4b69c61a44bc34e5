// What jobs cost, added up for whoever asked for them: a session, a context, a
// model. Written where jobs end, read by reports on the loop.

#ifndef DAEMON_CORE_ACCOUNTS_USE_COUNTERS_H_
#define DAEMON_CORE_ACCOUNTS_USE_COUNTERS_H_

#include <atomic>
#include <cstdint>

#include "base/posix/clock.h"

namespace rknnd::core {

// Thread: any. No lock: each number is exact, two of them may be of moments
// that are a job apart.
class UseCounters {
 public:
  // A job has left its cores, whatever became of it: a gang's time counts once
  // for each of them, so that sums over sessions, contexts, models and cores
  // agree.
  void AddNpu(base::Nanoseconds time) { Add(npu_, time); }
  // A job was answered well after so long in the queue and on its cores.
  void CountJob(base::Nanoseconds queue, base::Nanoseconds run) {
    Add(jobs_, 1);
    Add(queue_, queue);
    Add(run_, run);
  }
  // A frame was dropped for a newer one, or for its age.
  void CountDrop() { Add(drops_, 1); }
  // One of the jobs was answered by another session's run.
  void CountShared() { Add(shared_, 1); }

  [[nodiscard]] uint64_t jobs() const { return Get(jobs_); }
  [[nodiscard]] uint64_t drops() const { return Get(drops_); }
  [[nodiscard]] uint64_t shared() const { return Get(shared_); }
  [[nodiscard]] uint64_t npu_us() const { return Microseconds(npu_); }
  [[nodiscard]] uint64_t queue_us() const { return Microseconds(queue_); }
  [[nodiscard]] uint64_t run_us() const { return Microseconds(run_); }
  [[nodiscard]] base::Nanoseconds npu() const { return Get(npu_); }

 private:
  template <class T, class By>
  static void Add(std::atomic<T>& counter, By by) {
    counter.fetch_add(static_cast<T>(by), std::memory_order_relaxed);
  }
  template <class T>
  static T Get(const std::atomic<T>& counter) {
    return counter.load(std::memory_order_relaxed);
  }
  static uint64_t Microseconds(const std::atomic<base::Nanoseconds>& time) {
    return static_cast<uint64_t>(Get(time)) / 1000;
  }

  std::atomic<uint64_t> jobs_{0}, drops_{0}, shared_{0};
  std::atomic<base::Nanoseconds> npu_{0}, queue_{0}, run_{0};
};

}  // namespace rknnd::core

#endif  // DAEMON_CORE_ACCOUNTS_USE_COUNTERS_H_
