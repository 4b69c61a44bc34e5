// See the header. Every change of a job's state is SessionJobs' own.

#include "daemon/core/running/job_ends.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/posix/hot_path.h"

namespace rknnd::core {
namespace {

// So often a job that waits in its place for an equal run, and would have been
// too late without it, is looked at: it is that again when the run fails.
constexpr base::Nanoseconds kLookAgain = 10 * base::kMillisecond;

}  // namespace

RKNND_HOT_PATH JobCompletion AnswerTo(const JobSubmission& submission) {
  JobCompletion answer;
  answer.slot = submission.slot;
  answer.sequence = submission.sequence;
  answer.frame = submission.frame;
  return answer;
}

JobCompletion AnswerTo(const Job& job, base::Nanoseconds now) {
  JobCompletion answer = AnswerTo(job.submission);
  answer.queue = answer.total = now - job.submitted;
  return answer;
}

void JobEnds::Settle(Job* job, absl::Status status) {
  const base::Nanoseconds now = policies_.clock->Now();
  const bool dropped = absl::IsAborted(status);
  JobCompletion answer = AnswerTo(*job, now);
  answer.status = std::move(status);
  if (!answer.status.ok()) {
    policies_.attribution->NotRun(*job, answer.status.code(), now);
    if (dropped) job->hold.context->CountDrop();
  }
  JobHold hold;
  if (!Retire(job, &hold) || answer.status.ok()) return;
  if (!dropped) answer.drops = hold.context->TakeDrops();
  Answer(*hold.jobs, answer, hold.fences);
}

void JobEnds::SettleAll(Job* claimed, const absl::Status& reason) {
  SettleEach(claimed, [&reason](const Job&) { return reason; });
  // A gang that waited kept cores from younger jobs: they can run now, and no
  // end of a job need come that would say so.
  if (claimed != nullptr) policies_.waker->WakeOne();
  NoticeIdle();
}

RKNND_HOT_PATH bool JobEnds::Retire(Job* job, JobHold* hold) {
  if (job->submission.shared) [[unlikely]]
    policies_.shared_runs->Leave(job);
  // Which `hold` keeps alive from there on.
  return job->hold.jobs->Retire(job, hold);
}

RKNND_HOT_PATH void JobEnds::Answer(SessionJobs& jobs,
                                    const JobCompletion& completion,
                                    const JobFences& fences) {
  totals_.Count(completion);
  jobs.Answer(completion);
  policies_.fence_waits->SignalEnd(fences);
}

JobEnds::EarlyAnswer JobEnds::Detach(SessionJobs& jobs, Job* job,
                                     absl::Status status,
                                     base::Nanoseconds now) {
  EarlyAnswer early;
  early.completion = AnswerTo(*job, now);
  early.completion.drops = job->hold.context->TakeDrops();
  if (const base::Nanoseconds begun =
          job->begun.load(std::memory_order_acquire);
      begun != 0) {
    policies_.attribution->GivenUp(*job, status.code(), now);
    early.completion.core = job->core;
    early.completion.queue = begun - job->submitted;
    early.completion.run = now - begun;
    // Nobody else is to wait for as long as that.
    if (job->hold.shared != nullptr) {
      early.wake = policies_.shared_runs->Abandon(*job);
    } else {
      job->unwanted = true;
    }
  }
  early.completion.status = std::move(status);
  early.fences.out = std::move(job->hold.fences.out);
  early.fences.notify = std::move(job->hold.fences.notify);
  jobs.Detach(job);
  return early;
}

void JobEnds::Give(SessionJobs& jobs, const EarlyAnswer& early) {
  if (!early.completion.status.ok()) {
    Answer(jobs, early.completion, early.fences);
  }
  if (early.wake) policies_.waker->WakeOne();
}

void JobEnds::Expire(const Expiry::Due& due, base::Nanoseconds now) {
  SessionJobs& jobs = *due.jobs;
  Job* waited = nullptr;
  Breach breach = Breach::kNone;
  EarlyAnswer early;
  {
    base::MutexLock lock(jobs.mutex);
    Job* const job = jobs.Find(due.slot, due.serial);
    // Of a session that has ended only those are left that run.
    if (job == nullptr || jobs.ended()) return;
    // It is held while it is joined, and by no fence: seen on either side.
    const bool was_joined = job->joined.load();
    const bool held = job->waits_for_fence.load();
    const bool joined = was_joined || job->joined.load();
    const bool for_fence = held && !joined;
    breach = joined ? job->limits.WhileRunning(now)
                    : job->limits.WhileWaiting(now, for_fence);
    base::Nanoseconds again = kNever;
    if (breach == Breach::kNone) {
      const base::Nanoseconds next = job->limits.NextWaiting(for_fence);
      again = next <= now && next != kNever ? now + kLookAgain : next;
      again = std::min(again, job->limits.end);
    } else if (policies_.scheduler->Remove(job)) {
      jobs.Claim(job);
      waited = job;
    } else if (job->limits.WhileRunning(now) == Breach::kNone) {
      // It has begun in time. Or it is about to begin too late, which is seen
      // there.
      again = job->limits.end;
    } else {
      early = Detach(jobs, job, NotEndedInTime(*job, now), now);
    }
    // Who called us sets the alarm.
    if (again != kNever) (void)policies_.expiry->Add(job, again);
  }
  if (waited != nullptr) {
    waited->next = nullptr;
    SettleAll(waited, NotRunInTime(*waited, breach, now));
  }
  Give(jobs, early);
}

void JobEnds::GiveUpHanging(const Expiry::Due& due, base::Nanoseconds limit,
                            base::Nanoseconds now) {
  SessionJobs& jobs = *due.jobs;
  EarlyAnswer early;
  {
    base::MutexLock lock(jobs.mutex);
    Job* const job = jobs.Find(due.slot, due.serial);
    if (job == nullptr) {
      // It was answered by its own limit, perhaps before it had begun.
      const Job* const detached = jobs.FindDetached(due.serial);
      if (detached != nullptr && detached->submission.shared) {
        early.wake = policies_.shared_runs->Abandon(*detached);
      }
    } else if (!jobs.ended()) {
      early = Detach(jobs, job, Hangs(*job, limit, now), now);
    } else if (job->submission.shared) {
      // Nobody hears of it, but others may wait for it.
      early.wake = policies_.shared_runs->Abandon(*job);
    }
  }
  Give(jobs, early);
}

void JobEnds::FailWaiting(uint64_t token, const absl::Status& reason) {
  Job* const job = policies_.fence_waits->TakeOut(token);
  if (job == nullptr) return;
  const std::shared_ptr<SessionJobs> jobs = job->hold.jobs;
  Settle(job,
         reason.ok() ? FenceWaits::Closed(job->submission.fence_in) : reason);
  NoticeIdle();
}

void JobEnds::SetDraining(bool draining) {
  draining_.store(draining);
  NoticeIdle();
}

bool JobEnds::IsIdle() const {
  const SchedulerCounts counts = policies_.scheduler->counts();
  return counts.queued == 0 && counts.running == 0;
}

RKNND_HOT_PATH void JobEnds::NoticeIdle() {
  if (!draining_.load(std::memory_order_relaxed)) return;
  if (IsIdle()) idle_();
}

}  // namespace rknnd::core
