// How jobs end that do not simply run: dropped, cancelled, too late, or
// answered while they are still on their core. And how all of them leave their
// slot.
//
// A job's only answer is given by whoever claims, detaches or retires it first,
// under the gate's lock; what is freed and who is told comes behind the lock.

#include <algorithm>
#include <utility>

#include "base/posix/hot_path.h"
#include "daemon/core/job_gate_impl.h"
#include "daemon/core/runner_impl.h"

namespace rknnd::core {
namespace {

// So often a job that waits in its place for an equal run, and would have been
// too late without it, is looked at: it is that again when the run fails.
constexpr base::Nanoseconds kLookAgain = 10 * base::kMillisecond;

// An answer to `job` as far as it is known before it has ended.
JobCompletion AnswerTo(const Job& job, base::Nanoseconds now) {
  JobCompletion answer;
  answer.slot = job.submission.slot;
  answer.sequence = job.submission.sequence;
  answer.frame = job.submission.frame;
  answer.queue = answer.total = now - job.submitted;
  return answer;
}

}  // namespace

Job* JobGateImpl::ClaimOldest(RunContext& context, uint32_t count) {
  Job* first = nullptr;
  Job* last = nullptr;
  Job* job = context.jobs_in_flight.first;
  for (; count > 0 && job != nullptr; --count) {
    Job* const later = job->later;
    // One of them at most is not to be had: it runs, or is about to.
    if (!job->joined.load() && runner_->scheduler().Remove(job)) {
      Claim(job);
      job->next = nullptr;
      (last == nullptr ? first : last->next) = job;
      last = job;
    }
    job = later;
  }
  return first;
}

Job* JobGateImpl::ClaimQueued(RunContext& context) {
  Job* const queued = runner_->scheduler().Cancel(context);
  ClaimEach(queued);
  return queued;
}

void JobGateImpl::ClaimEach(Job* jobs) {
  for (Job* job = jobs; job != nullptr; job = job->next) {
    // One that was detached as it was about to begin, and put back then to wait
    // for an equal run, has had its answer.
    if (job->state == JobState::kInFlight) Claim(job);
  }
}

Job* JobGateImpl::Find(uint32_t slot, uint64_t serial) {
  Job* const job = slots_[slot].get();
  return job->state == JobState::kInFlight && job->serial == serial ? job
                                                                    : nullptr;
}

RKNND_HOT_PATH void JobGateImpl::Claim(Job* job) {
  ContextJobs& jobs = job->hold.context->jobs_in_flight;
  (job->earlier == nullptr ? jobs.first : job->earlier->later) = job->later;
  (job->later == nullptr ? jobs.last : job->later->earlier) = job->earlier;
  --jobs.count;
  quota_->GiveBack();
  job->earlier = job->later = nullptr;
  job->state = JobState::kClaimed;
  // Most jobs have no limits, and were never put in.
  if (job->limits.NextWaiting(/*for_fence=*/true) != kNever) {
    runner_->expiry().Remove(job);
  }
  job->hold.fences.wait.Forget();
}

JobGateImpl::EarlyAnswer JobGateImpl::Detach(Job* job, absl::Status status,
                                             base::Nanoseconds now) {
  Claim(job);
  EarlyAnswer early;
  early.completion = AnswerTo(*job, now);
  early.completion.drops = job->hold.context->TakeDrops();
  if (const base::Nanoseconds begun =
          job->begun.load(std::memory_order_acquire);
      begun != 0) {
    runner_->attribution().GivenUp(*job, status.code(), now);
    early.completion.core = job->core;
    early.completion.queue = begun - job->submitted;
    early.completion.run = now - begun;
    // Nobody else is to wait for as long as that.
    if (job->hold.shared != nullptr) {
      early.wake = runner_->shared_runs()->Abandon(*job);
    } else {
      job->unwanted = true;
    }
  }
  early.completion.status = std::move(status);
  early.fences.out = std::move(job->hold.fences.out);
  early.fences.notify = std::move(job->hold.fences.notify);
  job->state = JobState::kDetached;
  std::shared_ptr<Job>& slot = slots_[job->submission.slot];
  detached_.push_back(std::move(slot));
  slot = std::make_shared<Job>();
  return early;
}

void JobGateImpl::Expire(uint32_t slot, uint64_t serial,
                         base::Nanoseconds now) {
  Job* waited = nullptr;
  Breach breach = Breach::kNone;
  EarlyAnswer early;
  {
    base::MutexLock lock(mutex_);
    Job* const job = Find(slot, serial);
    // Of a session that has ended only those are left that run.
    if (job == nullptr || ended_) return;
    // It is held while it is joined, and by no fence: seen on either side.
    const bool was_joined = job->joined.load();
    const bool held = job->waits_for_fence.load();
    const bool joined = was_joined || job->joined.load();
    const bool for_fence = held && !joined;
    breach = joined ? job->limits.WhileRunning(now)
                    : job->limits.WhileWaiting(now, for_fence);
    base::Nanoseconds due = kNever;
    if (breach == Breach::kNone) {
      const base::Nanoseconds next = job->limits.NextWaiting(for_fence);
      due = next <= now && next != kNever ? now + kLookAgain : next;
      due = std::min(due, job->limits.end);
    } else if (runner_->scheduler().Remove(job)) {
      Claim(job);
      waited = job;
    } else if (job->limits.WhileRunning(now) == Breach::kNone) {
      // It has begun in time. Or it is about to begin too late, which is seen
      // there.
      due = job->limits.end;
    } else {
      early = Detach(job, NotEndedInTime(*job, now), now);
    }
    // Who called us sets the alarm.
    if (due != kNever) (void)runner_->expiry().Add(job, due);
  }
  if (waited != nullptr) {
    waited->next = nullptr;
    SettleAll(waited, NotRunInTime(*waited, breach, now));
  } else if (!early.completion.status.ok()) {
    Answer(early.completion, early.fences);
  }
  if (early.wake) runner_->WakeWorker();
}

void JobGateImpl::GiveUpHanging(uint32_t slot, uint64_t serial,
                                base::Nanoseconds limit,
                                base::Nanoseconds now) {
  EarlyAnswer early;
  {
    base::MutexLock lock(mutex_);
    Job* const job = Find(slot, serial);
    if (job == nullptr) {
      // It was answered by its own limit, perhaps before it had begun.
      early.wake = AbandonDetached(serial);
    } else if (!ended_) {
      early = Detach(job, Hangs(*job, limit, now), now);
    } else if (job->submission.shared) {
      // Nobody hears of it, but others may wait for it.
      early.wake = runner_->shared_runs()->Abandon(*job);
    }
  }
  if (!early.completion.status.ok()) Answer(early.completion, early.fences);
  if (early.wake) runner_->WakeWorker();
}

bool JobGateImpl::AbandonDetached(uint64_t serial) {
  const auto found =
      std::find_if(detached_.begin(), detached_.end(),
                   [serial](const auto& job) { return job->serial == serial; });
  return found != detached_.end() && (*found)->submission.shared &&
         runner_->shared_runs()->Abandon(**found);
}

void JobGateImpl::SettleAll(Job* claimed, const absl::Status& reason) {
  Job* next = nullptr;
  for (Job* job = claimed; job != nullptr; job = next) {
    next = job->next;
    Settle(job, reason);
  }
  // A gang that waited kept cores from younger jobs: they can run now, and no
  // end of a job need come that would say so.
  if (claimed != nullptr) runner_->WakeWorker();
  runner_->NoticeIdle();
}

void JobGateImpl::Settle(Job* job, absl::Status status) {
  const base::Nanoseconds now = runner_->clock().Now();
  const bool dropped = absl::IsAborted(status);
  JobCompletion answer = AnswerTo(*job, now);
  answer.status = std::move(status);
  if (!answer.status.ok()) {
    runner_->attribution().NotRun(*job, answer.status.code(), now);
    if (dropped) job->hold.context->CountDrop();
  }
  JobHold hold;
  if (!Retire(job, &hold) || answer.status.ok()) return;
  if (!dropped) answer.drops = hold.context->TakeDrops();
  Answer(answer, hold.fences);
}

RKNND_HOT_PATH bool JobGateImpl::Retire(Job* job, JobHold* hold) {
  if (job->submission.shared) [[unlikely]]
    runner_->shared_runs()->Leave(job);
  base::MutexLock lock(mutex_);
  if (job->state == JobState::kInFlight) Claim(job);
  *hold = std::move(job->hold);
  if (job->state == JobState::kDetached) {
    const auto found =
        std::find_if(detached_.begin(), detached_.end(),
                     [job](const auto& other) { return other.get() == job; });
    hold->detached = std::move(*found);
    detached_.erase(found);
    return false;
  }
  job->state = JobState::kFree;
  return !ended_;
}

RKNND_HOT_PATH void JobGateImpl::Answer(const JobCompletion& completion,
                                        const JobFences& fences) {
  if (completion.status.ok()) {
    use_.CountJob(completion.queue, completion.run);
    latency_.Add(completion.total);
  }
  runner_->totals().Count(completion);
  completions_->Complete(completion);
  runner_->fence_waits().SignalEnd(fences);
}

}  // namespace rknnd::core
