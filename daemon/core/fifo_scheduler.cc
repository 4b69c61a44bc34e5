// Oldest job first. Called by gates and the runner with jobs whose context,
// cores and bindings have been checked.

#include "daemon/core/fifo_scheduler.h"

#include <bit>

namespace rknnd::core {

FifoScheduler::FifoScheduler(uint32_t cores, uint32_t jobs_per_context)
    : cores_(cores),
      jobs_per_context_(jobs_per_context),
      ready_(cores + 1),
      busy_(cores, false),
      free_cores_(cores) {}

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
  if (free_cores_ == 0) return {};
  RunContext* oldest = ready_[cores_].first;
  for (uint32_t core = 0; core < cores_; ++core) {
    RunContext* context = ready_[core].first;
    if (context == nullptr || busy_[core]) continue;
    if (oldest == nullptr ||
        context->queue.first->ticket < oldest->queue.first->ticket) {
      oldest = context;
    }
  }
  if (oldest == nullptr) return {};

  ContextQueue& queue = oldest->queue;
  RemoveReady(*oldest);
  Job* job = queue.first;
  queue.first = job->next;
  job->next = nullptr;
  queue.running = true;
  job->core = std::has_single_bit(job->cores)
                  ? static_cast<uint32_t>(std::countr_zero(job->cores))
                  : ChooseCore();
  busy_[job->core] = true;
  --free_cores_;
  --counts_.queued;
  ++counts_.running;
  return {job, AnyRunnable()};
}

bool FifoScheduler::Release(RunContext& context, uint32_t core) {
  base::MutexLock lock(mutex_);
  busy_[core] = false;
  ++free_cores_;
  --counts_.running;
  context.queue.running = false;
  --context.queue.jobs;
  if (context.queue.first != nullptr) InsertReady(context);
  return AnyRunnable();
}

Job* FifoScheduler::Cancel(RunContext& context) {
  ContextQueue& queue = context.queue;
  base::MutexLock lock(mutex_);
  if (queue.first == nullptr) return nullptr;
  if (!queue.running) RemoveReady(context);
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
  return std::has_single_bit(job.cores)
             ? ready_[static_cast<size_t>(std::countr_zero(job.cores))]
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

bool FifoScheduler::AnyRunnable() const {
  if (free_cores_ == 0) return false;
  if (ready_[cores_].first != nullptr) return true;
  for (uint32_t core = 0; core < cores_; ++core) {
    if (!busy_[core] && ready_[core].first != nullptr) return true;
  }
  return false;
}

uint32_t FifoScheduler::ChooseCore() const {
  uint32_t choice = cores_;
  for (uint32_t core = 0; core < cores_; ++core) {
    if (busy_[core]) continue;
    if (ready_[core].first == nullptr) return core;
    if (choice == cores_) choice = core;
  }
  return choice;
}

}  // namespace rknnd::core
