// Checks what a client's ring asked for. Submissions are copies of what a
// hostile process wrote: any number may be anything.

#include "daemon/core/running/job_gate_impl.h"

#include <bit>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/posix/hot_path.h"
#include "base/status/status.h"
#include "daemon/core/running/runner_impl.h"

namespace rknnd::core {
namespace {

absl::Status FullError(uint32_t context) {
  return absl::ResourceExhaustedError(absl::StrCat(
      "the queue of context ", context,
      " is full (limit 'jobs_per_context'): wait for a run to end before the "
      "next, or use more contexts"));
}

absl::Status LongError(const Job& job) {
  const LoadedModel& model = *job.hold.context->model();
  return absl::FailedPreconditionError(absl::StrCat(
      "model '", model.name, "' is expected to run for ",
      job.expected / base::kSecond, " s on ",
      job.cores.gang ? std::popcount(job.cores.cores) : 1,
      " core(s), longer than any run may keep its cores from others "
      "(scheduler.longest_run, in seconds of all of them together)"));
}

}  // namespace

JobGateImpl::JobGateImpl(std::shared_ptr<RunnerImpl> runner,
                         std::shared_ptr<CompletionSink> completions,
                         std::string holder,
                         std::unique_ptr<JobQuota::Member> quota)
    : runner_(std::move(runner)),
      jobs_owner_(std::make_shared<SessionJobs>(
          runner_, runner_->policies().expiry, std::move(completions),
          std::move(holder), std::move(quota))),
      policies_(runner_->policies()),
      ends_(runner_->ends()) {}

// ---- a submission -----------------------------------------------------------

RKNND_HOT_PATH absl::Status JobGateImpl::Submit(
    const JobSubmission& submission) {
  if (submission.operation == JobSubmission::Operation::kCancel) [[unlikely]] {
    return TakeBack(submission);
  }
  JobFences fences;
  Outcome outcome;
  absl::Status refusal = FindFences(submission, &fences);
  const std::shared_ptr<Fence> awaited = fences.in;
  {
    base::MutexLock lock(jobs_.mutex);
    RKNND_ASSIGN_OR_RETURN(Job* const job, jobs_.FreeSlot(submission.slot));
    if (refusal.ok()) refusal = Admit(submission, job, &fences, &outcome);
  }
  // Outside the lock. The job may have ended meanwhile.
  if (outcome.arm) policies_.expiry->Arm();
  if (outcome.token != 0) {
    const absl::Status watched =
        policies_.fence_waits->Watch(outcome.token, awaited);
    if (!watched.ok()) ends_.FailWaiting(outcome.token, watched);
  }
  ends_.SettleEach(outcome.replaced, [&submission](const Job& job) {
    return DroppedFor(job, submission.frame);
  });
  if (refusal.ok()) return refusal;
  JobCompletion answer = AnswerTo(submission);
  answer.status = std::move(refusal);
  ends_.Answer(jobs_, answer, fences);
  return absl::OkStatus();
}

RKNND_HOT_PATH absl::Status JobGateImpl::FindFences(
    const JobSubmission& submission, JobFences* fences) const {
  if (submission.fence_in == 0 && submission.fence_out == 0 &&
      submission.notify == 0) {
    return absl::OkStatus();
  }
  RKNND_RETURN_IF_ERROR(fences_.Find(submission, fences));
  if (fences->in == nullptr) return absl::OkStatus();
  RKNND_ASSIGN_OR_RETURN(const bool wait,
                         policies_.fence_waits->MustWait(*fences->in));
  if (!wait) fences->in = nullptr;
  return absl::OkStatus();
}

RKNND_HOT_PATH absl::Status JobGateImpl::Admit(const JobSubmission& submission,
                                               Job* job, JobFences* fences,
                                               Outcome* outcome) {
  if (refusing_) {
    return absl::UnavailableError(
        "the daemon is draining and takes no new jobs");
  }
  RKNND_ASSIGN_OR_RETURN(const Entry* const entry, Find(submission.context));
  RKNND_RETURN_IF_ERROR(Check(submission, *entry));

  jobs_.Prepare(job, submission, policies_.clock->Now());
  job->hold.context = entry->context;
  job->hold.bindings = entry->bindings.Of(submission.set);
  job->cores = entry->cores;
  job->alone = job->hold.bindings->alone();
  job->waits_for_fence = fences->in != nullptr;
  if (job->waits_for_fence) fences->wait = policies_.fence_waits->Enter(job);
  job->hold.fences = std::move(*fences);
  SetLimits(job, entry->queue.max_age);
  if (submission.shared) [[unlikely]]
    EnterShared(job);
  absl::Status queued = Queue(job, entry->queue, outcome);
  if (queued.ok()) return queued;
  if (job->submission.shared) policies_.shared_runs->Leave(job);
  *fences = std::move(job->hold.fences);
  // Others hold what is dropped here: nothing is freed under the lock.
  job->hold = {};
  return queued;
}

RKNND_HOT_PATH absl::StatusOr<const JobGateImpl::Entry*> JobGateImpl::Find(
    uint32_t context) const {
  const auto found = contexts_.find(context);
  if (found == contexts_.end()) {
    return absl::NotFoundError(
        absl::StrCat("context ", context, " does not exist in this session"));
  }
  return &found->second;
}

RKNND_HOT_PATH absl::Status JobGateImpl::Check(const JobSubmission& submission,
                                               const Entry& entry) const {
  if (entry.context->traits().info_only) {
    return absl::FailedPreconditionError(absl::StrCat(
        "context ", submission.context,
        " was made with RKNN_FLAG_COLLECT_MODEL_INFO_ONLY and cannot run"));
  }
  if (submission.set >= kBindingSets) {
    return absl::InvalidArgumentError(
        absl::StrCat("set ", submission.set, " of the bindings of context ",
                     submission.context, " does not exist: there are 0 to ",
                     kBindingSets - 1));
  }
  const auto& bindings = entry.bindings.Of(submission.set);
  if (!bindings->complete()) return bindings->CheckComplete();
  if (submission.shared && submission.frame == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("a shared run of context ", submission.context,
                     " has no frame number: give each frame one of its own "
                     "(rknnd_run_options.frame_id), the same in all programs "
                     "that share it"));
  }
  return absl::OkStatus();
}

void JobGateImpl::EnterShared(Job* job) {
  job->submission.shared =
      policies_.shared_runs != nullptr &&
      SharedRuns::CanShare(*job->hold.context, *job->hold.bindings);
  if (job->submission.shared) policies_.shared_runs->Enter(job);
}

RKNND_HOT_PATH void JobGateImpl::SetLimits(Job* job,
                                           base::Nanoseconds max_age) const {
  const JobSubmission& submission = job->submission;
  const base::Nanoseconds now = job->submitted;
  JobLimits& limits = job->limits;
  limits.end = After(now, submission.timeout_ms * base::kMillisecond);
  limits.begin = After(now, submission.deadline);
  limits.useful = After(now, max_age);
  // One without any limit does not wait for ever.
  limits.fence = job->waits_for_fence.load() &&
                         limits.NextWaiting(/*for_fence=*/false) == kNever
                     ? After(now, policies_.fence_timeout)
                     : kNever;
}

RKNND_HOT_PATH absl::Status JobGateImpl::Queue(Job* job,
                                               const QueueRequest& queue,
                                               Outcome* outcome) {
  RunContext& context = *job->hold.context;
  const uint32_t in_flight = context.jobs_in_flight.count;
  const bool newest = queue.policy == QueuePolicy::kNewest;
  const uint32_t depth = newest && queue.depth == 0 ? 1 : queue.depth;
  uint32_t excess = 0;  // of the oldest, to be replaced as far as they wait
  if (newest) {
    excess = in_flight < depth ? 0 : in_flight - (depth - 1);
  } else if (depth != 0 && Waiting(context) >= depth) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the queue of context ", job->submission.context,
                     " is full: ", depth, " may wait, as its program has set"));
  } else if (in_flight >= policies_.jobs_per_context) {
    return FullError(job->submission.context);
  }
  // One that runs is not to be replaced.
  const bool replaces = excess > in_flight - Waiting(context);
  RKNND_RETURN_IF_ERROR(jobs_.Enter(job, replaces));

  // Queued means that a worker may have it already; what it does in the end
  // waits for our lock.
  Scheduler::Entry queued = policies_.scheduler->Enqueue(job);
  if (excess != 0 && (queued == Scheduler::Entry::kQueued ||
                      queued == Scheduler::Entry::kFull)) {
    // Behind the new one, which takes over the turn of those it replaces; only
    // where there was no room for both, the other way round. One of them at
    // most is not to be had: it runs, or is about to.
    outcome->replaced = ClaimIf(context, [&excess](const Job& old) {
      return excess != 0 && excess-- != 0 && !old.joined.load();
    });
    if (queued == Scheduler::Entry::kFull) {
      queued = policies_.scheduler->Enqueue(job);
    }
  }
  if (queued != Scheduler::Entry::kQueued) {
    jobs_.Refuse(job);
    if (queued == Scheduler::Entry::kLent) {
      return policies_.leased->Error(job->submission.context, job->cores);
    }
    if (queued == Scheduler::Entry::kLong) return LongError(*job);
    return FullError(job->submission.context);
  }
  const base::Nanoseconds due =
      job->limits.NextWaiting(job->waits_for_fence.load());
  if (due != kNever) outcome->arm = policies_.expiry->Add(job, due);
  outcome->token = job->hold.fences.wait.token();
  return absl::OkStatus();
}

RKNND_HOT_PATH uint32_t JobGateImpl::Waiting(const RunContext& context) {
  const ContextJobs& jobs = context.jobs_in_flight;
  const bool runs = jobs.first != nullptr &&
                    (jobs.first->begun.load(std::memory_order_relaxed) != 0 ||
                     jobs.first->joined.load(std::memory_order_relaxed));
  return jobs.count - (runs ? 1 : 0);
}

template <class Wanted>
Job* JobGateImpl::ClaimIf(RunContext& context, Wanted wanted) {
  Job* first = nullptr;
  Job** last = &first;
  Job* later = nullptr;
  for (Job* job = context.jobs_in_flight.first; job != nullptr; job = later) {
    later = job->later;
    if (!wanted(*job) || !policies_.scheduler->Remove(job)) continue;
    jobs_.Claim(job);
    job->next = nullptr;
    *last = job;
    last = &job->next;
  }
  return first;
}

absl::Status JobGateImpl::TakeBack(const JobSubmission& submission) {
  JobCompletion answer = AnswerTo(submission);
  Job* claimed = nullptr;
  {
    base::MutexLock lock(jobs_.mutex);
    RKNND_RETURN_IF_ERROR(jobs_.FreeSlot(submission.slot).status());
    const absl::StatusOr<const Entry*> entry = Find(submission.context);
    answer.status = entry.status();
    if (entry.ok()) {
      const uint64_t frame = submission.frame;
      claimed = ClaimIf(*(*entry)->context, [frame](const Job& job) {
        return frame == 0 || job.submission.frame == frame;
      });
    }
  }
  answer.count = ends_.SettleEach(claimed, Cancelled);
  ends_.NoticeIdle();
  // No job: it counts nowhere.
  jobs_.Complete(answer);
  return absl::OkStatus();
}

// ---- the session's changes --------------------------------------------------

void JobGateImpl::Add(std::shared_ptr<RunContext> context,
                      BindingSnapshot bindings, CoreChoice cores) {
  const uint32_t number = context->traits().number;
  base::MutexLock lock(jobs_.mutex);
  contexts_[number] = {std::move(context), std::move(bindings), cores, {}};
}

void JobGateImpl::SetBindings(uint32_t context, BindingSnapshot bindings) {
  {
    base::MutexLock lock(jobs_.mutex);
    const auto found = contexts_.find(context);
    if (found != contexts_.end()) std::swap(found->second.bindings, bindings);
  }
  // The old sets go here, outside the lock.
}

void JobGateImpl::SetCores(uint32_t context, CoreChoice cores) {
  base::MutexLock lock(jobs_.mutex);
  const auto found = contexts_.find(context);
  if (found != contexts_.end()) found->second.cores = cores;
}

void JobGateImpl::SetQueue(const QueueRequest& request) {
  base::MutexLock lock(jobs_.mutex);
  const auto found = contexts_.find(request.context);
  if (found != contexts_.end()) found->second.queue = request;
}

uint32_t JobGateImpl::Waiting(uint32_t context) {
  base::MutexLock lock(jobs_.mutex);
  const auto found = contexts_.find(context);
  return found == contexts_.end() ? 0 : Waiting(*found->second.context);
}

Job* JobGateImpl::ClaimQueued(RunContext& context) {
  Job* const queued = policies_.scheduler->Cancel(context);
  jobs_.ClaimEach(queued);
  return queued;
}

void JobGateImpl::Remove(uint32_t context) {
  Entry removed;
  Job* claimed = nullptr;
  {
    base::MutexLock lock(jobs_.mutex);
    const auto found = contexts_.find(context);
    if (found == contexts_.end()) return;
    removed = std::move(found->second);
    contexts_.erase(found);
    claimed = ClaimQueued(*removed.context);
  }
  ends_.SettleAll(claimed,
                  absl::CancelledError(absl::StrCat(
                      "context ", context, " was destroyed before the run")));
}

void JobGateImpl::AnswerStranded() {
  struct Stranded {
    Job* jobs = nullptr;
    absl::Status reason;
  };
  std::vector<Stranded> stranded;
  {
    base::MutexLock lock(jobs_.mutex);
    for (const auto& [number, entry] : contexts_) {
      Job* const jobs = policies_.scheduler->CancelLent(*entry.context);
      if (jobs == nullptr) continue;
      stranded.push_back({jobs, policies_.leased->Error(number, jobs->cores)});
      jobs_.ClaimEach(jobs);
    }
  }
  for (const Stranded& context : stranded) {
    ends_.SettleAll(context.jobs, context.reason);
  }
}

void JobGateImpl::SetRefusing(bool refusing) {
  base::MutexLock lock(jobs_.mutex);
  refusing_ = refusing || jobs_.ended();
}

size_t JobGateImpl::End() {
  std::map<uint32_t, Entry> contexts;
  Job* claimed = nullptr;
  size_t in_flight = 0;
  {
    base::MutexLock lock(jobs_.mutex);
    in_flight = jobs_.End();
    contexts.swap(contexts_);
    for (auto& [number, entry] : contexts) {
      Job* last = ClaimQueued(*entry.context);
      if (last == nullptr) continue;
      Job* const first = last;
      while (last->next != nullptr) last = last->next;
      last->next = claimed;
      claimed = first;
    }
  }
  ends_.SettleAll(claimed, absl::OkStatus());
  fences_.Clear();
  return in_flight;
}

}  // namespace rknnd::core
