// Matches queued jobs with core tokens and runs them. Workers call it after
// they have drained a ring, and when another worker woke them.

#ifndef DAEMON_CORE_RUNNER_H_
#define DAEMON_CORE_RUNNER_H_

#include <cstdint>

#include "daemon/core/types.h"

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
  // The fence that was watched by this token is signalled, or cannot be any
  // more. Followed by RunReady. Thread: worker.
  virtual void FenceReady(uint64_t /*token*/, FenceState /*state*/) {}
};

}  // namespace rknnd::core

#endif  // DAEMON_CORE_RUNNER_H_
