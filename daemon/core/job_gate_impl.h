// A session's job slots and its table of runnable contexts: all that a worker
// touches of a session. What comes in is in job_gate_impl.cc, how jobs end in
// job_gate_ends.cc.

#ifndef DAEMON_CORE_JOB_GATE_IMPL_H_
#define DAEMON_CORE_JOB_GATE_IMPL_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/posix/mutex.h"
#include "daemon/core/binding_sets.h"
#include "daemon/core/fence_table.h"
#include "daemon/core/job.h"
#include "daemon/core/job_gate.h"
#include "daemon/core/job_quota.h"
#include "daemon/core/latency_histogram.h"
#include "daemon/core/use_counters.h"

namespace rknnd::core {

class RunnerImpl;

// Its lock is taken before the scheduler's, never the other way round, and not
// held while the sink is called or anything is freed.
class JobGateImpl final : public JobGate,
                          public std::enable_shared_from_this<JobGateImpl> {
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

  // The job's time has come, or seems to have. Thread: worker.
  void Expire(uint32_t slot, uint64_t serial, base::Nanoseconds now);
  // It has been on its core for longer than `limit`: answers it, unless that
  // has happened. Thread: worker.
  void GiveUpHanging(uint32_t slot, uint64_t serial, base::Nanoseconds limit,
                     base::Nanoseconds now);

  // Answers a job that the caller took out of the scheduler's queue, and frees
  // its slot; `status` OK: without an answer, ABORTED: it was dropped.
  // Thread: any.
  void Settle(Job* job, absl::Status status);
  // Takes the job out of its slot, which is free from here on: the client may
  // use it the moment it sees the completion. False when it wants no answer:
  // it has had one, or the session has ended. Thread: any.
  [[nodiscard]] bool Retire(Job* job, JobHold* hold);
  // Counts and posts an answer, then tells those of `fences` that are to hear
  // of it. Thread: any.
  void Answer(const JobCompletion& completion, const JobFences& fences);

  // A job is on a core from now on: its client's, should this process die.
  void TellBegun(const JobSubmission& job) {
    completions_->Begin(job.slot, job.sequence);
  }

  // What the session's jobs cost; and how long they took, in all.
  [[nodiscard]] UseCounters& use() { return use_; }
  [[nodiscard]] const LatencyHistogram& latency() const { return latency_; }
  [[nodiscard]] const std::string& holder() const { return holder_; }
  [[nodiscard]] CopiedBytes ClientCopies(uint32_t context) const {
    return completions_->ClientCopies(context);
  }

 private:
  struct Entry {
    std::shared_ptr<RunContext> context;
    BindingSnapshot bindings;
    CoreChoice cores;
    QueueRequest queue;
  };
  // What is done about a submission once the lock is released.
  struct Outcome {
    absl::Status refusal;
    Job* ended = nullptr;  // taken out, claimed; linked by `next`
    bool arm = false;      // the alarm of Expiry
    uint32_t cancelled = 0;
  };

  // Fills `job` and queues it, or says why not; takes `fences` if it does.
  absl::Status Admit(const JobSubmission& submission, JobFences* fences,
                     Job* job, Outcome* outcome) RKNND_REQUIRES(mutex_);
  // As its context's queue has it: what is replaced goes to outcome->ended.
  absl::Status Queue(Job* job, const Entry& entry, Outcome* outcome)
      RKNND_REQUIRES(mutex_);
  void SetLimits(Job* job, const Entry& entry);
  // Of those that ask for it, if they can have it.
  void EnterShared(Job* job) RKNND_REQUIRES(mutex_);
  // kCancel: the jobs go to outcome->ended.
  absl::Status TakeBack(const JobSubmission& submission, Outcome* outcome)
      RKNND_REQUIRES(mutex_);
  // The fences that a submission names. One that is to be waited for and is
  // signalled already is left out.
  absl::Status FindFences(const JobSubmission& submission,
                          JobFences* fences) const;
  static uint32_t WaitingOf(const RunContext& context);
  // The oldest `count` of a context's jobs, as far as they wait, in the order
  // of their age.
  Job* ClaimOldest(RunContext& context, uint32_t count) RKNND_REQUIRES(mutex_);
  // All that wait.
  Job* ClaimQueued(RunContext& context) RKNND_REQUIRES(mutex_);
  // Taken out of the scheduler's queue, linked by `next`.
  void ClaimEach(Job* jobs) RKNND_REQUIRES(mutex_);
  // Answers what was claimed; `reason` OK: no answers.
  void SettleAll(Job* claimed, const absl::Status& reason);

  // The job in flight in that slot, or null when it was answered meanwhile.
  [[nodiscard]] Job* Find(uint32_t slot, uint64_t serial)
      RKNND_REQUIRES(mutex_);
  // From kInFlight to kClaimed: the caller answers it, nobody else.
  void Claim(Job* job) RKNND_REQUIRES(mutex_);
  // From kInFlight to kDetached, and a new job for the slot. What the answer
  // needs of the old one.
  struct EarlyAnswer {
    JobCompletion completion;
    JobFences fences;
    bool wake = false;  // others can run by themselves now
  };
  EarlyAnswer Detach(Job* job, absl::Status status, base::Nanoseconds now)
      RKNND_REQUIRES(mutex_);
  // A job that was detached hangs: nobody is to wait for its run. True when
  // some job can run now.
  bool AbandonDetached(uint64_t serial) RKNND_REQUIRES(mutex_);

  const std::shared_ptr<RunnerImpl> runner_;
  const std::shared_ptr<CompletionSink> completions_;
  const std::string holder_;
  const std::unique_ptr<JobQuota::Member> quota_;  // all that is in flight
  FenceTable fences_;
  UseCounters use_;
  LatencyHistogram latency_;

  base::Mutex mutex_;
  bool ended_ RKNND_GUARDED_BY(mutex_) = false;
  bool refusing_ RKNND_GUARDED_BY(mutex_) = false;
  // Ordered: a client cannot choose numbers that make look-ups slow.
  std::map<uint32_t, Entry> contexts_ RKNND_GUARDED_BY(mutex_);
  // A job's fields belong to its owner (job.h).
  std::array<std::shared_ptr<Job>, kJobSlots> slots_ RKNND_GUARDED_BY(mutex_);
  // Answered and still on their cores: never more than there are cores.
  std::vector<std::shared_ptr<Job>> detached_ RKNND_GUARDED_BY(mutex_);
  uint64_t next_serial_ RKNND_GUARDED_BY(mutex_) = 1;
};

}  // namespace rknnd::core

#endif  // DAEMON_CORE_JOB_GATE_IMPL_H_
