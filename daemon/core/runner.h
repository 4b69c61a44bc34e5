// Matches queued jobs with core tokens and runs them. Workers call it after
// they have drained a ring, and when another worker woke them.

#ifndef DAEMON_CORE_RUNNER_H_
#define DAEMON_CORE_RUNNER_H_

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
};

}  // namespace rknnd::core

#endif  // DAEMON_CORE_RUNNER_H_
