// See the header.

#include "daemon/task_meter.h"

#include <pthread.h>

#include <utility>

#include "base/posix/clock.h"

namespace rknnd {

void TaskMeter::Post(std::function<void()> task) {
  posted_.fetch_add(1);
  thread_->Post([this, task = std::move(task)]() mutable {
    if (cpu_clock_.load() == 0) {
      clockid_t clock = 0;
      if (pthread_getcpuclockid(pthread_self(), &clock) == 0) {
        cpu_clock_.store(clock);
      }
    }
    task();
    // What it owns goes as a part of it.
    task = nullptr;
    ended_.fetch_add(1);
  });
}

uint64_t TaskMeter::cpu_time() const {
  const clockid_t clock = cpu_clock_.load();
  timespec time{};
  if (clock == 0 || clock_gettime(clock, &time) != 0) return 0;
  return static_cast<uint64_t>(time.tv_sec) *
             static_cast<uint64_t>(base::kSecond) +
         static_cast<uint64_t>(time.tv_nsec);
}

}  // namespace rknnd
