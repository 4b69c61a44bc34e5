// The gate of one session: what its submissions may name, the checks of what
// they do name, and what a job is asked as it enters: its limits, its fence,
// the queue of its context, its tenant's quota, and the scheduler. From there
// on it belongs to the session's jobs (jobs/session_jobs.h).

#ifndef DAEMON_CORE_RUNNING_JOB_GATE_IMPL_H_
#define DAEMON_CORE_RUNNING_JOB_GATE_IMPL_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "base/posix/mutex.h"
#include "daemon/core/accounts/job_quota.h"
#include "daemon/core/contexts/binding_sets.h"
#include "daemon/core/jobs/fence_table.h"
#include "daemon/core/jobs/job.h"
#include "daemon/core/jobs/session_jobs.h"
#include "daemon/core/running/job_ends.h"
#include "daemon/core/running/job_gate.h"
#include "daemon/core/running/policies.h"

namespace rknnd::core {

class RunnerImpl;

// It asks the policies and JobEnds, and none of them calls it. What it knows is
// guarded by the lock of the session's jobs.
class JobGateImpl final : public JobGate {
 public:
  // `holder`: the session's name in messages. `quota`: what its tenant may have
  // in flight.
  JobGateImpl(std::shared_ptr<RunnerImpl> runner,
              std::shared_ptr<CompletionSink> completions, std::string holder,
              std::unique_ptr<JobQuota::Member> quota);

  // Thread: worker.
  absl::Status Submit(const JobSubmission& submission) override;

  // The session's changes; in force from the next submission on. Thread: loop.
  void Add(std::shared_ptr<RunContext> context, BindingSnapshot bindings,
           CoreChoice cores);
  void SetBindings(uint32_t context, BindingSnapshot bindings);
  void SetCores(uint32_t context, CoreChoice cores);
  // `request.depth` is within the session's limit.
  void SetQueue(const QueueRequest& request);
  // Answers the context's queued jobs with CANCELLED; a running one ends.
  void Remove(uint32_t context);
  // Cores were lent: answers queued jobs that could run nowhere else.
  void AnswerStranded();
  // Every submission is answered with UNAVAILABLE from now on, or not.
  void SetRefusing(bool refusing);
  // Drops all queued jobs without an answer, and refuses from now on; running
  // ones are wanted by nobody any more. How many had not been answered.
  size_t End();
  // What submissions may name from now on.
  [[nodiscard]] FenceTable& fences() { return fences_; }

  // Jobs of a context that wait.
  [[nodiscard]] uint32_t Waiting(uint32_t context);
  // The session's jobs, and what they cost.
  [[nodiscard]] SessionJobs& jobs() { return jobs_; }

 private:
  struct Entry {
    std::shared_ptr<RunContext> context;
    BindingSnapshot bindings;
    CoreChoice cores;
    QueueRequest queue;
  };

  // What is done about a submission once the lock is released.
  struct Outcome {
    Job* replaced = nullptr;  // by it, claimed; linked by `next`
    bool arm = false;         // the alarm of Expiry
    uint64_t token = 0;       // of the fence that it waits for; 0: none
  };

  // The fences that a submission names. One that is to be waited for and is
  // signalled already is left out.
  absl::Status FindFences(const JobSubmission& submission,
                          JobFences* fences) const;
  // Fills `job`, which is free, and queues it, or says why not; takes `fences`
  // if it does.
  absl::Status Admit(const JobSubmission& submission, Job* job,
                     JobFences* fences, Outcome* outcome)
      RKNND_REQUIRES(jobs_.mutex);
  // Whether a submission may enter, as far as it is known beforehand.
  absl::Status Check(const JobSubmission& submission, const Entry& entry) const
      RKNND_REQUIRES(jobs_.mutex);
  void SetLimits(Job* job, base::Nanoseconds max_age) const;
  // Of those that ask for it, if they can have it.
  void EnterShared(Job* job);
  // As its context's queue has it.
  absl::Status Queue(Job* job, const QueueRequest& queue, Outcome* outcome)
      RKNND_REQUIRES(jobs_.mutex);
  static uint32_t Waiting(const RunContext& context);

  // kCancel.
  absl::Status TakeBack(const JobSubmission& submission);
  // Takes those of a context's jobs out of the scheduler's queue of which
  // `wanted` says so, as far as they wait, oldest first, linked by `next`.
  template <class Wanted>
  Job* ClaimIf(RunContext& context, Wanted wanted) RKNND_REQUIRES(jobs_.mutex);
  // All that wait.
  Job* ClaimQueued(RunContext& context) RKNND_REQUIRES(jobs_.mutex);
  absl::StatusOr<const Entry*> Find(uint32_t context) const
      RKNND_REQUIRES(jobs_.mutex);

  const std::shared_ptr<RunnerImpl> runner_;
  const std::shared_ptr<SessionJobs> jobs_owner_;
  SessionJobs& jobs_ = *jobs_owner_;
  const Policies& policies_;  // these two are the runner's
  JobEnds& ends_;
  FenceTable fences_;
  bool refusing_ RKNND_GUARDED_BY(jobs_.mutex) = false;
  // Ordered: a client cannot choose numbers that make look-ups slow.
  std::map<uint32_t, Entry> contexts_ RKNND_GUARDED_BY(jobs_.mutex);
};

}  // namespace rknnd::core

#endif  // DAEMON_CORE_RUNNING_JOB_GATE_IMPL_H_
