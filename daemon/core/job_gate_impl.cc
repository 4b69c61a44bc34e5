// Checks what a client's ring asked for. Submissions are copies of what a
// hostile process wrote: any number may be anything.

#include "daemon/core/job_gate_impl.h"

#include <bit>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/posix/hot_path.h"
#include "base/status/status.h"
#include "daemon/core/runner_impl.h"

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
      completions_(std::move(completions)),
      holder_(std::move(holder)),
      quota_(std::move(quota)) {
  for (auto& slot : slots_) slot = std::make_shared<Job>();
}

RKNND_HOT_PATH absl::Status JobGateImpl::Submit(
    const JobSubmission& submission) {
  JobFences fences;
  Outcome outcome;
  const bool cancel = submission.operation == JobSubmission::Operation::kCancel;
  if (!cancel) outcome.refusal = FindFences(submission, &fences);
  const std::shared_ptr<Fence> awaited = fences.in;
  uint64_t token = 0;
  {
    base::MutexLock lock(mutex_);
    if (ended_) {
      return absl::FailedPreconditionError("the session has ended");
    }
    if (submission.slot >= kJobSlots) {
      return absl::FailedPreconditionError(
          absl::StrCat("job slot ", submission.slot,
                       " does not exist, there are ", kJobSlots));
    }
    Job* job = slots_[submission.slot].get();
    if (job->state != JobState::kFree) {
      return absl::FailedPreconditionError(
          absl::StrCat("job slot ", submission.slot, " is still in flight"));
    }
    if (cancel) {
      outcome.refusal = TakeBack(submission, &outcome);
    } else if (outcome.refusal.ok()) {
      outcome.refusal = Admit(submission, &fences, job, &outcome);
      if (outcome.refusal.ok() && awaited != nullptr) {
        token = job->hold.fences.wait.token();
      }
    }
  }
  // Outside the lock. The job may have ended meanwhile.
  if (outcome.arm) runner_->expiry().Arm();
  if (token != 0) runner_->WatchFence(token, awaited);
  JobCompletion answer;
  answer.slot = submission.slot;
  answer.sequence = submission.sequence;
  answer.frame = submission.frame;
  Job* next = nullptr;
  for (Job* job = outcome.ended; job != nullptr; job = next) {
    next = job->next;
    Settle(job, cancel ? Cancelled(*job) : DroppedFor(*job, submission.frame));
  }
  if (cancel) {
    runner_->NoticeIdle();
    answer.count = outcome.cancelled;
    answer.status = std::move(outcome.refusal);
    // No job: it counts nowhere.
    completions_->Complete(answer);
    return absl::OkStatus();
  }
  if (!outcome.refusal.ok()) {
    answer.status = std::move(outcome.refusal);
    Answer(answer, fences);
  }
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
                         runner_->fence_waits().MustWait(*fences->in));
  if (!wait) fences->in = nullptr;
  return absl::OkStatus();
}

RKNND_HOT_PATH absl::Status JobGateImpl::Admit(const JobSubmission& submission,
                                               JobFences* fences, Job* job,
                                               Outcome* outcome) {
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

  job->submission = submission;
  job->submitted = runner_->clock().Now();
  job->serial = next_serial_++;
  job->begun.store(0, std::memory_order_relaxed);
  job->hold = {};
  job->hold.gate = shared_from_this();
  job->hold.context = entry.context;
  job->hold.bindings = bindings;
  job->cores = entry.cores;
  job->alone = bindings->alone();
  job->finisher = runner_.get();
  job->waits_for_fence = fences->in != nullptr;
  if (job->waits_for_fence) fences->wait = runner_->fence_waits().Enter(job);
  job->hold.fences = std::move(*fences);
  SetLimits(job, entry);
  if (submission.shared) [[unlikely]]
    EnterShared(job);
  absl::Status queued = Queue(job, entry, outcome);
  if (queued.ok()) return queued;
  if (job->submission.shared) runner_->shared_runs()->Leave(job);
  *fences = std::move(job->hold.fences);
  // Others hold what is dropped here: nothing is freed under the lock.
  job->hold = {};
  return queued;
}

void JobGateImpl::EnterShared(Job* job) {
  SharedRuns* const shared = runner_->shared_runs();
  job->submission.shared =
      shared != nullptr &&
      SharedRuns::CanShare(*job->hold.context, *job->hold.bindings);
  if (job->submission.shared) shared->Enter(job);
}

RKNND_HOT_PATH void JobGateImpl::SetLimits(Job* job, const Entry& entry) {
  const JobSubmission& submission = job->submission;
  const base::Nanoseconds now = job->submitted;
  JobLimits& limits = job->limits;
  limits.end = After(now, submission.timeout_ms * base::kMillisecond);
  limits.begin = After(now, submission.deadline);
  limits.useful = After(now, entry.queue.max_age);
  // One without any limit does not wait for ever.
  limits.fence = job->waits_for_fence.load() &&
                         limits.NextWaiting(/*for_fence=*/false) == kNever
                     ? After(now, runner_->fence_timeout())
                     : kNever;
}

RKNND_HOT_PATH absl::Status JobGateImpl::Queue(Job* job, const Entry& entry,
                                               Outcome* outcome) {
  RunContext& context = *entry.context;
  ContextJobs& jobs = context.jobs_in_flight;
  const bool newest = entry.queue.policy == QueuePolicy::kNewest;
  const uint32_t depth =
      newest && entry.queue.depth == 0 ? 1 : entry.queue.depth;
  uint32_t excess = 0;  // of the oldest, to be replaced as far as they wait
  if (newest) {
    excess = jobs.count < depth ? 0 : jobs.count - (depth - 1);
  } else if (depth != 0 && WaitingOf(context) >= depth) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the queue of context ", job->submission.context,
                     " is full: ", depth, " may wait, as its program has set"));
  } else if (jobs.count >= runner_->jobs_per_context()) {
    return FullError(job->submission.context);
  }
  // One that runs is not to be replaced.
  const bool replaces = excess > jobs.count - WaitingOf(context);
  if (!quota_->Take(replaces)) return quota_->Refusal();

  Scheduler& scheduler = runner_->scheduler();
  // Queued means that a worker may have it already; what it does in the end
  // waits for our lock.
  job->state = JobState::kInFlight;
  Scheduler::Entry queued = scheduler.Enqueue(job);
  if (excess != 0 && (queued == Scheduler::Entry::kQueued ||
                      queued == Scheduler::Entry::kFull)) {
    // Behind the new one, which takes over the turn of those it replaces; only
    // where there was no room for both, the other way round.
    outcome->ended = ClaimOldest(context, excess);
    if (queued == Scheduler::Entry::kFull) queued = scheduler.Enqueue(job);
  }
  if (queued != Scheduler::Entry::kQueued) {
    job->state = JobState::kFree;
    quota_->GiveBack();
    if (queued == Scheduler::Entry::kLent) {
      return runner_->LentError(job->submission.context, entry.cores);
    }
    if (queued == Scheduler::Entry::kLong) return LongError(*job);
    return FullError(job->submission.context);
  }
  job->earlier = jobs.last;
  job->later = nullptr;
  (jobs.last == nullptr ? jobs.first : jobs.last->later) = job;
  jobs.last = job;
  ++jobs.count;
  const base::Nanoseconds due =
      job->limits.NextWaiting(job->waits_for_fence.load());
  if (due != kNever) outcome->arm = runner_->expiry().Add(job, due);
  return absl::OkStatus();
}

absl::Status JobGateImpl::TakeBack(const JobSubmission& submission,
                                   Outcome* outcome) {
  const auto found = contexts_.find(submission.context);
  if (found == contexts_.end()) {
    return absl::NotFoundError(absl::StrCat("context ", submission.context,
                                            " does not exist in this session"));
  }
  Job* last = nullptr;
  Job* later = nullptr;
  for (Job* job = found->second.context->jobs_in_flight.first; job != nullptr;
       job = later) {
    later = job->later;
    if (submission.frame != 0 && job->submission.frame != submission.frame) {
      continue;
    }
    if (!runner_->scheduler().Remove(job)) continue;
    Claim(job);
    job->next = nullptr;
    (last == nullptr ? outcome->ended : last->next) = job;
    last = job;
    ++outcome->cancelled;
  }
  return absl::OkStatus();
}

void JobGateImpl::Add(std::shared_ptr<RunContext> context,
                      BindingSnapshot bindings, CoreChoice cores) {
  const uint32_t number = context->traits().number;
  base::MutexLock lock(mutex_);
  contexts_[number] = {std::move(context), std::move(bindings), cores, {}};
}

void JobGateImpl::SetBindings(uint32_t context, BindingSnapshot bindings) {
  {
    base::MutexLock lock(mutex_);
    const auto found = contexts_.find(context);
    if (found != contexts_.end()) std::swap(found->second.bindings, bindings);
  }
  // The old sets go here, outside the lock.
}

void JobGateImpl::SetCores(uint32_t context, CoreChoice cores) {
  base::MutexLock lock(mutex_);
  const auto found = contexts_.find(context);
  if (found != contexts_.end()) found->second.cores = cores;
}

void JobGateImpl::SetQueue(const QueueRequest& request) {
  base::MutexLock lock(mutex_);
  const auto found = contexts_.find(request.context);
  if (found != contexts_.end()) found->second.queue = request;
}

uint32_t JobGateImpl::Waiting(uint32_t context) {
  base::MutexLock lock(mutex_);
  const auto found = contexts_.find(context);
  return found == contexts_.end() ? 0 : WaitingOf(*found->second.context);
}

uint32_t JobGateImpl::WaitingOf(const RunContext& context) {
  const ContextJobs& jobs = context.jobs_in_flight;
  const bool runs = jobs.first != nullptr &&
                    (jobs.first->begun.load(std::memory_order_relaxed) != 0 ||
                     jobs.first->joined.load(std::memory_order_relaxed));
  return jobs.count - (runs ? 1 : 0);
}

void JobGateImpl::Remove(uint32_t context) {
  Entry removed;
  Job* claimed = nullptr;
  {
    base::MutexLock lock(mutex_);
    const auto found = contexts_.find(context);
    if (found == contexts_.end()) return;
    removed = std::move(found->second);
    contexts_.erase(found);
    claimed = ClaimQueued(*removed.context);
  }
  SettleAll(claimed,
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
    base::MutexLock lock(mutex_);
    for (const auto& [number, entry] : contexts_) {
      Job* const jobs = runner_->scheduler().CancelLent(*entry.context);
      if (jobs == nullptr) continue;
      stranded.push_back({jobs, runner_->LentError(number, jobs->cores)});
      ClaimEach(jobs);
    }
  }
  for (const Stranded& context : stranded) {
    SettleAll(context.jobs, context.reason);
  }
}

void JobGateImpl::SetRefusing(bool refusing) {
  base::MutexLock lock(mutex_);
  refusing_ = refusing || ended_;
}

size_t JobGateImpl::End() {
  std::map<uint32_t, Entry> contexts;
  Job* claimed = nullptr;
  size_t in_flight = 0;
  {
    base::MutexLock lock(mutex_);
    ended_ = true;
    for (const std::shared_ptr<Job>& job : slots_) {
      if (job == nullptr || job->state != JobState::kInFlight) continue;
      ++in_flight;
      // Others may be answered with the run of one that is shared.
      if (!job->submission.shared) job->unwanted = true;
    }
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
  SettleAll(claimed, absl::OkStatus());
  fences_.Clear();
  return in_flight;
}

}  // namespace rknnd::core
