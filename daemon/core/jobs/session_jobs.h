// The one owner of the lives of a session's jobs: it has their memory, and
// makes every change of a job's state (job.h), each by a function of its own
// below. The gate lets jobs enter (running/job_gate_impl.h), the runner lets
// them run, and who ends one otherwise is running/job_ends.h; all of them ask
// here.

#ifndef DAEMON_CORE_JOBS_SESSION_JOBS_H_
#define DAEMON_CORE_JOBS_SESSION_JOBS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/posix/clock.h"
#include "base/posix/mutex.h"
#include "daemon/core/accounts/job_quota.h"
#include "daemon/core/accounts/latency_histogram.h"
#include "daemon/core/accounts/use_counters.h"
#include "daemon/core/jobs/expiry.h"
#include "daemon/core/jobs/job.h"
#include "daemon/core/terms/types.h"

namespace rknnd::core {

// Jobs keep it alive. Whoever decides what becomes of a job holds `mutex` from
// the look to the change of its state. Lock order: this one, then that of fence
// waits or of shared runs, then the scheduler's; Expiry's is a leaf. It is not
// held while the sink is called or anything is freed. Thread: any.
class SessionJobs final : public std::enable_shared_from_this<SessionJobs> {
 public:
  // `finisher`: whom the device tells of their ends. It has `expiry`.
  // `holder`: the session's name in messages. `quota`: what its tenant may have
  // in flight.
  SessionJobs(std::shared_ptr<JobFinisher> finisher, Expiry* expiry,
              std::shared_ptr<CompletionSink> completions, std::string holder,
              std::unique_ptr<JobQuota::Member> quota);
  SessionJobs(const SessionJobs&) = delete;
  SessionJobs& operator=(const SessionJobs&) = delete;

  base::Mutex mutex;

  // ---- the states, in the order of a life ----

  // The free job of a slot. FAILED_PRECONDITION: the client breaks the
  // protocol, or the session has ended.
  absl::StatusOr<Job*> FreeSlot(uint32_t slot) RKNND_REQUIRES(mutex);
  // Makes a free job this submission's. What it holds beside this object, its
  // limits and its cores are the caller's to fill in.
  void Prepare(Job* job, const JobSubmission& submission, base::Nanoseconds now)
      RKNND_REQUIRES(mutex);
  // kFree to kInFlight: the youngest of its context from here on. An error, of
  // the tenant's quota: it stays free. `replaces`: another job is about to end
  // for it.
  absl::Status Enter(Job* job, bool replaces) RKNND_REQUIRES(mutex);
  // kInFlight to kFree, of one that the scheduler did not take. It keeps what
  // it holds.
  void Refuse(Job* job) RKNND_REQUIRES(mutex);
  // kInFlight to kClaimed: the caller answers it, nobody else.
  void Claim(Job* job) RKNND_REQUIRES(mutex);
  // The same of jobs that are linked by `next`, as far as they are in flight.
  void ClaimEach(Job* jobs) RKNND_REQUIRES(mutex);
  // kInFlight to kDetached, and its slot is free: the caller answers it now,
  // and it stays on its core.
  void Detach(Job* job) RKNND_REQUIRES(mutex);
  // From any of these three: takes what the job holds, and its slot is free
  // from here on, as the client may use it the moment it sees the completion.
  // False when it wants no answer: it has had one, or the session has ended.
  [[nodiscard]] bool Retire(Job* job, JobHold* hold);
  // The session ends: nothing enters any more, and what runs is wanted by
  // nobody. How many jobs were in flight.
  size_t End() RKNND_REQUIRES(mutex);

  // ---- looks ----

  [[nodiscard]] bool ended() const RKNND_REQUIRES(mutex) { return ended_; }
  // The job in flight in that slot, or null when it was answered meanwhile.
  [[nodiscard]] Job* Find(uint32_t slot, uint64_t serial) const
      RKNND_REQUIRES(mutex);
  // One that was answered and is still on its core, or null.
  [[nodiscard]] const Job* FindDetached(uint64_t serial) const
      RKNND_REQUIRES(mutex);

  // ---- what the session hears and is counted ----

  // Posts an answer to a job, and counts it.
  void Answer(const JobCompletion& completion);
  // Posts an answer to what was no job.
  void Complete(const JobCompletion& completion) {
    completions_->Complete(completion);
  }
  // A job is on a core from now on: its client's, should this process die.
  void TellBegun(const JobSubmission& job) {
    completions_->Begin(job.slot, job.sequence);
  }
  [[nodiscard]] CopiedBytes ClientCopies(uint32_t context) const {
    return completions_->ClientCopies(context);
  }
  // What the session's jobs cost; and how long they took, in all.
  [[nodiscard]] UseCounters& use() { return use_; }
  [[nodiscard]] const LatencyHistogram& latency() const { return latency_; }
  [[nodiscard]] const std::string& holder() const { return holder_; }

 private:
  // Out of its context's jobs in flight.
  void Leave(Job* job) RKNND_REQUIRES(mutex);

  const std::shared_ptr<JobFinisher> finisher_;
  Expiry* const expiry_;
  const std::shared_ptr<CompletionSink> completions_;
  const std::string holder_;
  const std::unique_ptr<JobQuota::Member> quota_;  // all that is in flight
  UseCounters use_;
  LatencyHistogram latency_;

  bool ended_ RKNND_GUARDED_BY(mutex) = false;
  // Null: none has been there yet, or it was detached. Most clients have few
  // jobs at one time.
  std::array<std::shared_ptr<Job>, kJobSlots> slots_ RKNND_GUARDED_BY(mutex);
  // Answered and still on their cores: never more than there are cores.
  std::vector<std::shared_ptr<Job>> detached_ RKNND_GUARDED_BY(mutex);
  uint64_t next_serial_ RKNND_GUARDED_BY(mutex) = 1;
};

}  // namespace rknnd::core

#endif  // DAEMON_CORE_JOBS_SESSION_JOBS_H_
