// A session's job slots and its table of runnable contexts: all that a worker
// touches of a session.

#ifndef DAEMON_CORE_JOB_GATE_IMPL_H_
#define DAEMON_CORE_JOB_GATE_IMPL_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>

#include "absl/status/status.h"
#include "base/posix/mutex.h"
#include "daemon/core/job.h"
#include "daemon/core/job_gate.h"

namespace rknnd::core {

class RunnerImpl;

// Its lock is taken before the scheduler's, never the other way round, and not
// held while the sink is called or anything is freed.
class JobGateImpl final : public JobGate,
                          public std::enable_shared_from_this<JobGateImpl> {
 public:
  JobGateImpl(std::shared_ptr<RunnerImpl> runner,
              std::shared_ptr<CompletionSink> completions);

  // Thread: worker.
  absl::Status Submit(const JobSubmission& submission) override;

  // The session's changes; in force from the next submission on. Thread: loop.
  void Add(std::shared_ptr<RunContext> context,
           std::shared_ptr<const BindingSet> bindings, CoreChoice cores);
  void SetBindings(uint32_t context,
                   std::shared_ptr<const BindingSet> bindings);
  void SetCores(uint32_t context, CoreChoice cores);
  // Answers the context's queued jobs with CANCELLED; a running one ends.
  void Remove(uint32_t context);
  // Every submission is answered with UNAVAILABLE from now on.
  void Refuse();
  // Drops all queued jobs without an answer, and refuses from now on.
  void End();

  // Takes the job out of its slot, which is free from here on: the client may
  // use it the moment it sees the completion. False when the session has ended
  // and wants no answer. Thread: any.
  [[nodiscard]] bool Retire(Job* job, JobHold* hold);
  // Counts and posts an answer. Thread: any.
  void Answer(const JobCompletion& completion);

  [[nodiscard]] uint64_t jobs() const { return jobs_done_.load(); }
  // On a core, with jobs that failed there.
  [[nodiscard]] base::Nanoseconds npu_time() const { return npu_time_.load(); }
  // What those of jobs() waited for a core, and took on it.
  [[nodiscard]] base::Nanoseconds queue_time() const {
    return queue_time_.load();
  }
  [[nodiscard]] base::Nanoseconds run_time() const { return run_time_.load(); }
  [[nodiscard]] CopiedBytes ClientCopies(uint32_t context) const {
    return completions_->ClientCopies(context);
  }

 private:
  struct Entry {
    std::shared_ptr<RunContext> context;
    std::shared_ptr<const BindingSet> bindings;
    CoreChoice cores;
  };

  // Fills `job` and queues it, or says why not.
  absl::Status Admit(const JobSubmission& submission, Job* job)
      RKNND_REQUIRES(mutex_);
  // `reason` OK: no answers.
  void CancelQueued(RunContext& context, const absl::Status& reason);

  const std::shared_ptr<RunnerImpl> runner_;
  const std::shared_ptr<CompletionSink> completions_;
  std::atomic<uint64_t> jobs_done_{0};
  std::atomic<base::Nanoseconds> npu_time_{0}, queue_time_{0}, run_time_{0};

  base::Mutex mutex_;
  bool ended_ RKNND_GUARDED_BY(mutex_) = false;
  bool refusing_ RKNND_GUARDED_BY(mutex_) = false;
  // Ordered: a client cannot choose numbers that make look-ups slow.
  std::map<uint32_t, Entry> contexts_ RKNND_GUARDED_BY(mutex_);
  // A job's fields belong to its owner (job.h); in_flight to this lock.
  std::array<Job, kJobSlots> jobs_;
};

}  // namespace rknnd::core

#endif  // DAEMON_CORE_JOB_GATE_IMPL_H_
