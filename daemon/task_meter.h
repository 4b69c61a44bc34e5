// An executor in front of a TaskThread that counts what goes through, so that
// the watchdog sees whether the thread gets on with its tasks.

#ifndef DAEMON_TASK_METER_H_
#define DAEMON_TASK_METER_H_

#include <time.h>

#include <atomic>
#include <cstdint>
#include <functional>

#include "base/posix/event_loop.h"

namespace rknnd {

// Thread: any.
class TaskMeter final : public base::Executor {
 public:
  // One thread runs the tasks, one after the other. It is stopped before this
  // goes.
  explicit TaskMeter(base::Executor* thread) : thread_(thread) {}

  void Post(std::function<void()> task) override;

  // Tasks that were posted and have not ended.
  [[nodiscard]] bool busy() const { return posted_.load() != ended_.load(); }
  [[nodiscard]] uint64_t ended() const { return ended_.load(); }
  // CPU time that the thread has had. A task may take minutes (a model is
  // compiled); as long as it computes it is not stuck.
  [[nodiscard]] uint64_t cpu_time() const;

 private:
  base::Executor* const thread_;
  std::atomic<uint64_t> posted_{0}, ended_{0};
  // Of the thread's CPU time; 0: it has run nothing yet.
  std::atomic<clockid_t> cpu_clock_{0};
};

}  // namespace rknnd

#endif  // DAEMON_TASK_METER_H_
