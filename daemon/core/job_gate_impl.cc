// Checks what a client's ring asked for. Submissions are copies of what a
// hostile process wrote: any number may be anything.

#include "daemon/core/job_gate_impl.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/core/runner_impl.h"

namespace rknnd::core {

JobGateImpl::JobGateImpl(std::shared_ptr<RunnerImpl> runner,
                         std::shared_ptr<CompletionSink> completions)
    : runner_(std::move(runner)), completions_(std::move(completions)) {}

absl::Status JobGateImpl::Submit(const JobSubmission& submission) {
  absl::Status refusal;
  {
    base::MutexLock lock(mutex_);
    if (ended_) {
      return absl::FailedPreconditionError("the session has ended");
    }
    if (submission.slot >= kJobSlots) {
      return absl::FailedPreconditionError(
          absl::StrCat("job slot ", submission.slot,
                       " does not exist, there "
                       "are ",
                       kJobSlots));
    }
    Job* job = &jobs_[submission.slot];
    if (job->in_flight) {
      return absl::FailedPreconditionError(
          absl::StrCat("job slot ", submission.slot, " is still in flight"));
    }
    refusal = Admit(submission, job);
  }
  if (!refusal.ok()) {
    JobCompletion answer;
    answer.slot = submission.slot;
    answer.sequence = submission.sequence;
    answer.frame = submission.frame;
    answer.status = std::move(refusal);
    Answer(answer);
  }
  return absl::OkStatus();
}

absl::Status JobGateImpl::Admit(const JobSubmission& submission, Job* job) {
  if (refusing_) {
    return absl::UnavailableError(
        "the daemon is draining and takes no new jobs");
  }
  const auto found = contexts_.find(submission.context);
  if (found == contexts_.end()) {
    return absl::NotFoundError(absl::StrCat("context ", submission.context,
                                            " does not exist in this session"));
  }
  const Entry& entry = found->second;
  if (entry.context->traits().info_only) {
    return absl::FailedPreconditionError(absl::StrCat(
        "context ", submission.context,
        " was made with RKNN_FLAG_COLLECT_MODEL_INFO_ONLY and cannot run"));
  }
  if (!entry.bindings->complete()) return entry.bindings->CheckComplete();

  job->submission = submission;
  job->submitted = runner_->clock().Now();
  job->hold = {};
  job->hold.gate = shared_from_this();
  job->hold.context = entry.context;
  job->hold.bindings = entry.bindings;
  job->cores = entry.cores;
  job->alone = entry.bindings->alone();
  job->finisher = runner_.get();
  // Queued means that a worker may have it already.
  job->in_flight = true;
  if (runner_->scheduler().Enqueue(job)) return absl::OkStatus();
  job->in_flight = false;
  // Others hold what is dropped here: nothing is freed under the lock.
  job->hold = {};
  return absl::ResourceExhaustedError(absl::StrCat(
      "the queue of context ", submission.context,
      " is full (limit 'jobs_per_context'): wait for a run to end before the "
      "next, or use more contexts"));
}

void JobGateImpl::Add(std::shared_ptr<RunContext> context,
                      std::shared_ptr<const BindingSet> bindings,
                      CoreChoice cores) {
  const uint32_t number = context->traits().number;
  base::MutexLock lock(mutex_);
  contexts_[number] = {std::move(context), std::move(bindings), cores};
}

void JobGateImpl::SetBindings(uint32_t context,
                              std::shared_ptr<const BindingSet> bindings) {
  {
    base::MutexLock lock(mutex_);
    const auto found = contexts_.find(context);
    if (found != contexts_.end()) found->second.bindings.swap(bindings);
  }
  // The old set goes here, outside the lock.
}

void JobGateImpl::SetCores(uint32_t context, CoreChoice cores) {
  base::MutexLock lock(mutex_);
  const auto found = contexts_.find(context);
  if (found != contexts_.end()) found->second.cores = cores;
}

void JobGateImpl::Remove(uint32_t context) {
  Entry removed;
  {
    base::MutexLock lock(mutex_);
    const auto found = contexts_.find(context);
    if (found == contexts_.end()) return;
    removed = std::move(found->second);
    contexts_.erase(found);
  }
  CancelQueued(*removed.context,
               absl::CancelledError(absl::StrCat(
                   "context ", context, " was destroyed before the run")));
}

void JobGateImpl::Refuse() {
  base::MutexLock lock(mutex_);
  refusing_ = true;
}

void JobGateImpl::End() {
  std::map<uint32_t, Entry> contexts;
  {
    base::MutexLock lock(mutex_);
    ended_ = true;
    contexts.swap(contexts_);
  }
  for (auto& [number, entry] : contexts) {
    CancelQueued(*entry.context, absl::OkStatus());
  }
}

void JobGateImpl::CancelQueued(RunContext& context,
                               const absl::Status& reason) {
  Job* next = nullptr;
  Job* const cancelled = runner_->scheduler().Cancel(context);
  for (Job* job = cancelled; job != nullptr; job = next) {
    next = job->next;
    JobCompletion answer;
    answer.slot = job->submission.slot;
    answer.sequence = job->submission.sequence;
    answer.frame = job->submission.frame;
    answer.status = reason;
    JobHold hold;
    if (Retire(job, &hold) && !reason.ok()) Answer(answer);
  }
  // A gang that waited kept cores from younger jobs: they can run now, and no
  // end of a job need come that would say so.
  if (cancelled != nullptr) runner_->WakeWorker();
  runner_->NoticeIdle();
}

bool JobGateImpl::Retire(Job* job, JobHold* hold) {
  base::MutexLock lock(mutex_);
  *hold = std::move(job->hold);
  job->hold = {};
  job->in_flight = false;
  return !ended_;
}

void JobGateImpl::Answer(const JobCompletion& completion) {
  if (completion.status.ok()) {
    jobs_done_.fetch_add(1, std::memory_order_relaxed);
    queue_time_.fetch_add(completion.queue, std::memory_order_relaxed);
    run_time_.fetch_add(completion.run, std::memory_order_relaxed);
  }
  npu_time_.fetch_add(completion.run, std::memory_order_relaxed);
  runner_->CountAnswer(completion.status.ok());
  completions_->Complete(completion);
}

}  // namespace rknnd::core
