// Nothing here allocates but the first job of a slot, which is needed again
// after one that was detached, and nothing is freed under the lock.

#include "daemon/core/jobs/session_jobs.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/posix/hot_path.h"

namespace rknnd::core {

SessionJobs::SessionJobs(std::shared_ptr<JobFinisher> finisher, Expiry* expiry,
                         std::shared_ptr<CompletionSink> completions,
                         std::string holder,
                         std::unique_ptr<JobQuota::Member> quota)
    : finisher_(std::move(finisher)),
      expiry_(expiry),
      completions_(std::move(completions)),
      holder_(std::move(holder)),
      quota_(std::move(quota)) {}

RKNND_HOT_PATH absl::StatusOr<Job*> SessionJobs::FreeSlot(uint32_t slot) {
  if (ended_) return absl::FailedPreconditionError("the session has ended");
  if (slot >= kJobSlots) {
    return absl::FailedPreconditionError(absl::StrCat(
        "job slot ", slot, " does not exist, there are ", kJobSlots));
  }
  std::shared_ptr<Job>& job = slots_[slot];
  if (job == nullptr) job = std::make_shared<Job>();
  if (job->state != JobState::kFree) {
    return absl::FailedPreconditionError(
        absl::StrCat("job slot ", slot, " is still in flight"));
  }
  return job.get();
}

RKNND_HOT_PATH void SessionJobs::Prepare(Job* job,
                                         const JobSubmission& submission,
                                         base::Nanoseconds now) {
  job->submission = submission;
  job->submitted = now;
  job->serial = next_serial_++;
  job->begun.store(0, std::memory_order_relaxed);
  job->hold = {};
  job->hold.jobs = shared_from_this();
  job->finisher = finisher_.get();
}

RKNND_HOT_PATH absl::Status SessionJobs::Enter(Job* job, bool replaces) {
  if (!quota_->Take(replaces)) return quota_->Refusal();
  ContextJobs& jobs = job->hold.context->jobs_in_flight;
  job->earlier = jobs.last;
  job->later = nullptr;
  (jobs.last == nullptr ? jobs.first : jobs.last->later) = job;
  jobs.last = job;
  ++jobs.count;
  job->state = JobState::kInFlight;
  return absl::OkStatus();
}

RKNND_HOT_PATH void SessionJobs::Leave(Job* job) {
  ContextJobs& jobs = job->hold.context->jobs_in_flight;
  (job->earlier == nullptr ? jobs.first : job->earlier->later) = job->later;
  (job->later == nullptr ? jobs.last : job->later->earlier) = job->earlier;
  --jobs.count;
  job->earlier = job->later = nullptr;
  quota_->GiveBack();
}

void SessionJobs::Refuse(Job* job) {
  Leave(job);
  job->state = JobState::kFree;
}

RKNND_HOT_PATH void SessionJobs::Claim(Job* job) {
  Leave(job);
  job->state = JobState::kClaimed;
  // Most jobs have no limits, and were never put in.
  if (job->limits.NextWaiting(/*for_fence=*/true) != kNever) {
    expiry_->Remove(job);
  }
  job->hold.fences.wait.Forget();
}

void SessionJobs::ClaimEach(Job* jobs) {
  for (Job* job = jobs; job != nullptr; job = job->next) {
    // One that was detached as it was about to begin, and put back then to wait
    // for an equal run, has had its answer.
    if (job->state == JobState::kInFlight) Claim(job);
  }
}

void SessionJobs::Detach(Job* job) {
  Claim(job);
  job->state = JobState::kDetached;
  detached_.push_back(std::move(slots_[job->submission.slot]));
}

RKNND_HOT_PATH bool SessionJobs::Retire(Job* job, JobHold* hold) {
  base::MutexLock lock(mutex);
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

size_t SessionJobs::End() {
  ended_ = true;
  size_t in_flight = 0;
  for (const std::shared_ptr<Job>& job : slots_) {
    if (job == nullptr || job->state != JobState::kInFlight) continue;
    ++in_flight;
    // Others may be answered with the run of one that is shared.
    if (!job->submission.shared) job->unwanted = true;
  }
  return in_flight;
}

Job* SessionJobs::Find(uint32_t slot, uint64_t serial) const {
  Job* const job = slots_[slot].get();
  if (job == nullptr || job->state != JobState::kInFlight) return nullptr;
  return job->serial == serial ? job : nullptr;
}

const Job* SessionJobs::FindDetached(uint64_t serial) const {
  const auto found =
      std::find_if(detached_.begin(), detached_.end(),
                   [serial](const auto& job) { return job->serial == serial; });
  return found == detached_.end() ? nullptr : found->get();
}

RKNND_HOT_PATH void SessionJobs::Answer(const JobCompletion& completion) {
  if (completion.status.ok()) {
    use_.CountJob(completion.queue, completion.run);
    latency_.Add(completion.total);
  }
  completions_->Complete(completion);
}

}  // namespace rknnd::core
