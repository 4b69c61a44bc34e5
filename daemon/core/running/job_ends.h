// How jobs end that do not simply run: taken out of the queue, too late, or
// answered while they are still on their core. And how all of them are
// answered. Used by gates, by the runner, and by nobody whom it calls.

#ifndef DAEMON_CORE_RUNNING_JOB_ENDS_H_
#define DAEMON_CORE_RUNNING_JOB_ENDS_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <utility>

#include "absl/status/status.h"
#include "base/posix/clock.h"
#include "daemon/core/jobs/expiry.h"
#include "daemon/core/jobs/job.h"
#include "daemon/core/jobs/session_jobs.h"
#include "daemon/core/reports/job_totals.h"
#include "daemon/core/running/policies.h"
#include "daemon/core/terms/types.h"

namespace rknnd::core {

// An answer to a submission, or to a job as far as it is known before it has
// ended.
JobCompletion AnswerTo(const JobSubmission& submission);
JobCompletion AnswerTo(const Job& job, base::Nanoseconds now);

// A job's only answer is given by whoever claims, detaches or retires it first
// (SessionJobs); what is freed and who is told comes behind the lock.
// Thread: any.
class JobEnds {
 public:
  // `idle` is called when nothing is queued or runs, once draining. Thread:
  // any.
  JobEnds(const Policies& policies, std::function<void()> idle)
      : policies_(policies), idle_(std::move(idle)) {}
  JobEnds(const JobEnds&) = delete;
  JobEnds& operator=(const JobEnds&) = delete;

  // Answers a job that the caller took out of the scheduler's queue, and frees
  // its slot; `status` OK: without an answer, ABORTED: it was dropped.
  void Settle(Job* job, absl::Status status);
  // The same of jobs that are linked by `next`, each with `why(job)`; how many
  // they were. Unlike below, it is for the caller to see who can run now.
  template <class Why>
  uint32_t SettleEach(Job* claimed, Why why) {
    uint32_t count = 0;
    for (Job* job = claimed; job != nullptr; ++count) {
      Job* const next = job->next;
      Settle(job, why(*job));
      job = next;
    }
    return count;
  }
  // The same of all that were claimed, for one reason.
  void SettleAll(Job* claimed, const absl::Status& reason);
  // SessionJobs::Retire, of one that no other run will answer either.
  [[nodiscard]] bool Retire(Job* job, JobHold* hold);
  // Counts and posts an answer, then tells those of `fences` that are to hear
  // of it.
  void Answer(SessionJobs& jobs, const JobCompletion& completion,
              const JobFences& fences);

  // The job's time has come, or seems to have. Thread: worker.
  void Expire(const Expiry::Due& due, base::Nanoseconds now);
  // It has been on its core for longer than `limit`: answers it, unless that
  // has happened. Thread: worker.
  void GiveUpHanging(const Expiry::Due& due, base::Nanoseconds limit,
                     base::Nanoseconds now);
  // Answers a job that waits for a fence in vain; `reason` OK: its fence was
  // closed too early.
  void FailWaiting(uint64_t token, const absl::Status& reason);

  // ---- whether any are left ----

  // From now on, and at once if so, tells when all is idle, or no longer. No
  // job may enter meanwhile.
  void SetDraining(bool draining);
  void NoticeIdle();
  [[nodiscard]] bool IsIdle() const;

  [[nodiscard]] JobTotals& totals() { return totals_; }

 private:
  // What the answer needs of a job that is detached.
  struct EarlyAnswer {
    JobCompletion completion;
    JobFences fences;
    bool wake = false;  // others can run by themselves now
  };
  EarlyAnswer Detach(SessionJobs& jobs, Job* job, absl::Status status,
                     base::Nanoseconds now) RKNND_REQUIRES(jobs.mutex);
  void Give(SessionJobs& jobs, const EarlyAnswer& early);

  const Policies& policies_;
  const std::function<void()> idle_;
  JobTotals totals_;
  std::atomic<bool> draining_{false};
};

}  // namespace rknnd::core

#endif  // DAEMON_CORE_RUNNING_JOB_ENDS_H_
