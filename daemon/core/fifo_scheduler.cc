// Oldest job first. Called by gates and the runner with jobs whose context,
// cores and bindings have been checked.

#include "daemon/core/fifo_scheduler.h"

#include <bit>

namespace rknnd::core {
namespace {

// Whose oldest job came first; null is younger than anybody.
RunContext* Older(RunContext* a, RunContext* b) {
  if (a == nullptr || b == nullptr) return a == nullptr ? b : a;
  return a->queue.first->ticket < b->queue.first->ticket ? a : b;
}

}  // namespace

FifoScheduler::FifoScheduler(uint32_t cores, uint32_t jobs_per_context)
    : cores_(cores),
      jobs_per_context_(jobs_per_context),
      ready_(cores + 1 + (cores - 1)),
      free_(static_cast<uint32_t>((uint64_t{1} << cores) - 1)) {}

bool FifoScheduler::Enqueue(Job* job) {
  RunContext& context = *job->hold.context;
  ContextQueue& queue = context.queue;
  base::MutexLock lock(mutex_);
  if (queue.jobs >= jobs_per_context_) return false;
  job->next = nullptr;
  job->ticket = next_ticket_++;
  const bool was_empty = queue.first == nullptr;
  (was_empty ? queue.first : queue.last->next) = job;
  queue.last = job;
  ++queue.jobs;
  ++counts_.queued;
  if (was_empty && !queue.running) InsertReady(context);
  return true;
}

Scheduler::Turn FifoScheduler::TakeNext() {
  base::MutexLock lock(mutex_);
  RunContext* next = NextReady();
  if (next == nullptr) return {};

  ContextQueue& queue = next->queue;
  RemoveReady(*next);
  Job* job = queue.first;
  queue.first = job->next;
  job->next = nullptr;
  queue.running = true;
  if (job->cores.gang) {
    job->core = 0;
    job->granted = job->cores.cores;
  } else {
    job->core = std::has_single_bit(job->cores.cores)
                    ? static_cast<uint32_t>(std::countr_zero(job->cores.cores))
                    : ChooseCore();
    job->granted = uint32_t{1} << job->core;
  }
  free_ &= ~job->granted;
  turns_.Start(*job);
  --counts_.queued;
  ++counts_.running;
  return {job, NextReady() != nullptr};
}

bool FifoScheduler::Release(RunContext& context, uint32_t granted) {
  base::MutexLock lock(mutex_);
  free_ |= granted;
  --counts_.running;
  context.queue.running = false;
  --context.queue.jobs;
  turns_.End(context,
             [this](RunContext& ready)
                 RKNND_NO_THREAD_SAFETY_ANALYSIS { InsertReady(ready); });
  if (context.queue.first != nullptr) InsertReady(context);
  return NextReady() != nullptr;
}

Job* FifoScheduler::Cancel(RunContext& context) {
  ContextQueue& queue = context.queue;
  base::MutexLock lock(mutex_);
  if (queue.first == nullptr) return nullptr;
  const bool parked = turns_.Forget(
      context, [this](RunContext& ready)
                   RKNND_NO_THREAD_SAFETY_ANALYSIS { InsertReady(ready); });
  if (!queue.running && !parked) RemoveReady(context);
  Job* jobs = queue.first;
  for (Job* job = jobs; job != nullptr; job = job->next) {
    --queue.jobs;
    --counts_.queued;
  }
  queue.first = nullptr;
  return jobs;
}

SchedulerCounts FifoScheduler::counts() const {
  base::MutexLock lock(mutex_);
  return counts_;
}

FifoScheduler::ReadyList& FifoScheduler::ListOf(const Job& job) {
  const uint32_t cores = job.cores.cores;
  if (job.cores.gang) {
    return ready_[cores_ - 1 + static_cast<uint32_t>(std::popcount(cores))];
  }
  return std::has_single_bit(cores)
             ? ready_[static_cast<uint32_t>(std::countr_zero(cores))]
             : ready_[cores_];
}

void FifoScheduler::InsertReady(RunContext& context) {
  ReadyList& list = ListOf(*context.queue.first);
  // New jobs belong at the end. A context that has just run may be older than
  // others, but seldom far from either end.
  RunContext* before = list.last;
  while (before != nullptr &&
         before->queue.first->ticket > context.queue.first->ticket) {
    before = before->queue.previous;
  }
  RunContext* after = before == nullptr ? list.first : before->queue.next;
  context.queue.previous = before;
  context.queue.next = after;
  (before == nullptr ? list.first : before->queue.next) = &context;
  (after == nullptr ? list.last : after->queue.previous) = &context;
}

void FifoScheduler::RemoveReady(RunContext& context) {
  ReadyList& list = ListOf(*context.queue.first);
  ContextQueue& queue = context.queue;
  (queue.previous == nullptr ? list.first : queue.previous->queue.next) =
      queue.next;
  (queue.next == nullptr ? list.last : queue.next->queue.previous) =
      queue.previous;
  queue.previous = nullptr;
  queue.next = nullptr;
}

RunContext* FifoScheduler::OldestGang() const {
  RunContext* oldest = nullptr;
  for (uint32_t list = cores_ + 1; list < ready_.size(); ++list) {
    oldest = Older(oldest, ready_[list].first);
  }
  return oldest;
}

RunContext* FifoScheduler::NextReady() {
  while (free_ != 0) {
    // The gang first: while it waits for memory it keeps no core.
    RunContext* waits = OldestGang();
    if (waits == nullptr || turns_.MayStart(*waits)) {
      waits = FindNext();
      if (waits == nullptr || turns_.MayStart(*waits)) return waits;
    }
    RemoveReady(*waits);
    turns_.Park(*waits);
  }
  return nullptr;
}

RunContext* FifoScheduler::FindNext() const {
  if (free_ == 0) return nullptr;
  RunContext* const gang = OldestGang();
  RunContext* next = nullptr;
  uint32_t kept = 0;
  if (gang != nullptr) {
    kept = gang->queue.first->cores.cores;
    if ((free_ & kept) == kept) next = gang;
  }
  // Nobody younger than the gang takes a core of it.
  const auto consider = [&, free = free_](RunContext* context, uint32_t cores) {
    if (context == nullptr) return;
    if (gang != nullptr && Older(context, gang) == gang) cores &= ~kept;
    if ((free & cores) != 0) next = Older(next, context);
  };
  for (uint32_t core = 0; core < cores_; ++core) {
    consider(ready_[core].first, uint32_t{1} << core);
  }
  consider(ready_[cores_].first, ~uint32_t{0});
  return next;
}

uint32_t FifoScheduler::ChooseCore() const {
  const RunContext* gang = OldestGang();
  uint32_t kept = 0;
  if (gang != nullptr) kept = gang->queue.first->cores.cores;
  // The gang's only when there is no other: the job is older then.
  uint32_t allowed = free_ & ~kept;
  if (allowed == 0) allowed = free_;
  const auto choice = static_cast<uint32_t>(std::countr_zero(allowed));
  for (uint32_t core = choice; core < cores_; ++core) {
    if ((allowed >> core & 1) == 0) continue;
    if (ready_[core].first == nullptr) return core;
  }
  return choice;
}

}  // namespace rknnd::core
