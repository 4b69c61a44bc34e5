// Matches queued jobs with core tokens and runs them. Workers call it after
// they have drained a ring, and when another worker woke them.

#ifndef DAEMON_CORE_RUNNING_RUNNER_H_
#define DAEMON_CORE_RUNNING_RUNNER_H_

#include <cstdint>

#include "base/posix/clock.h"
#include "daemon/core/terms/types.h"

namespace rknnd::core {

class Runner {
 public:
  virtual ~Runner() = default;

  // Prepares the calling worker. Thread: worker, once.
  virtual void EnterWorker() = 0;
  // Takes a token and a job, runs it on this thread, posts its completion,
  // and goes on until no queued job has a free core. Where more jobs are
  // runnable than this thread can take, wakes a worker for the next first.
  // Holds no lock while a job runs. Thread: worker.
  virtual void RunReady() = 0;
  // The calling worker finds nothing to do and is about to sleep: clears what
  // jobs left in internal memory of idle cores. Thread: worker.
  virtual void ClearIdle() {}
  // Answers what has waited or run for too long. Thread: worker.
  virtual void Expire() {}
  // Whether what is due gets done, for the watchdog. Thread: any.
  struct Progress {
    bool can_begin = false;             // some job has its turn and a core
    uint64_t turns = 0;                 // taken by workers so far
    bool expires = false;               // some job has a time, or is watched
    base::Nanoseconds next_expiry = 0;  // the earliest: by the runner's clock
  };
  [[nodiscard]] virtual Progress progress() { return {}; }
  // The fence that was watched by this token is signalled, or cannot be any
  // more. Followed by RunReady. Thread: worker.
  virtual void FenceReady(uint64_t /*token*/, FenceState /*state*/) {}
};

}  // namespace rknnd::core

#endif  // DAEMON_CORE_RUNNING_RUNNER_H_
