// Called by a scheduler under its lock, with jobs whose bindings were checked.

#include "daemon/core/scheduling/memory_turns.h"

#include <algorithm>

#include "base/posix/hot_path.h"

namespace rknnd::core {
namespace {

bool Precedes(const RunContext& a, const RunContext& b) {
  const Priority one = a.traits().priority;
  const Priority other = b.traits().priority;
  if (one != other) return one < other;
  return a.queue.first->ticket < b.queue.first->ticket;
}

const MemoryRange& RangeOf(const RunContext& context) {
  return *context.queue.first->alone;
}

// Whether `holder` does not run yet and is of a lower class.
bool IsKeptForLower(const RunContext* holder, const RunContext& context) {
  return holder->queue.has_turn &&
         holder->traits().priority > context.traits().priority;
}

}  // namespace

bool MemoryTurns::IsFree(const RunContext& context) const {
  // Kept for it already.
  if (context.queue.has_turn) return true;
  const MemoryRange& range = RangeOf(context);
  return !IsTaken(context, range) && !IsWaitedFor(context, range);
}

bool MemoryTurns::IsTaken(const RunContext& context,
                          const MemoryRange& range) const {
  return std::any_of(
      taken_.begin(), taken_.begin() + taken_count_, [&](const Taken& taken) {
        return taken.context != &context && taken.range.Overlaps(range) &&
               !IsKeptForLower(taken.context, context);
      });
}

bool MemoryTurns::IsWaitedFor(const RunContext& context,
                              const MemoryRange& range) const {
  size_t looks = 0;
  for (const RunContext* other = first_;
       other != nullptr && other != &context && Precedes(*other, context);
       other = other->queue.next) {
    if (RangeOf(*other).Overlaps(range)) return true;
    if (++looks == kLooks) break;
  }
  return false;
}

void MemoryTurns::Park(RunContext& context) {
  RunContext* before = last_;
  while (before != nullptr && Precedes(context, *before)) {
    before = before->queue.previous;
  }
  RunContext* after = before == nullptr ? first_ : before->queue.next;
  context.queue.previous = before;
  context.queue.next = after;
  (before == nullptr ? first_ : before->queue.next) = &context;
  (after == nullptr ? last_ : after->queue.previous) = &context;
  context.queue.parked = true;
}

void MemoryTurns::Unpark(RunContext& context) {
  ContextQueue& queue = context.queue;
  (queue.previous == nullptr ? first_ : queue.previous->queue.next) =
      queue.next;
  (queue.next == nullptr ? last_ : queue.next->queue.previous) = queue.previous;
  queue.previous = nullptr;
  queue.next = nullptr;
  queue.parked = false;
}

RKNND_HOT_PATH void MemoryTurns::Start(const Job& job) {
  if (job.alone == nullptr) return;
  RunContext& context = *job.hold.context;
  if (context.queue.has_turn) {
    context.queue.has_turn = false;
    --kept_;
  } else {
    TakeFromLower(context, *job.alone);
    taken_[taken_count_++] = {&context, *job.alone};
  }
  context.queue.runs_alone = true;
}

RKNND_HOT_PATH void MemoryTurns::End(RunContext& context, Ready ready) {
  if (!context.queue.runs_alone) return;
  context.queue.runs_alone = false;
  GiveUp(context);
  Give(ready);
}

bool MemoryTurns::Forget(RunContext& context, Ready ready) {
  const bool parked = context.queue.parked;
  if (parked) {
    Unpark(context);
  } else if (context.queue.has_turn) {
    context.queue.has_turn = false;
    --kept_;
    GiveUp(context);
  } else {
    return false;
  }
  // Younger ones may have waited for it alone.
  Give(ready);
  return parked;
}

void MemoryTurns::Give(Ready ready) {
  size_t looks = 0;
  for (RunContext* context = first_;
       context != nullptr && kept_ < kCores && looks < kLooks; ++looks) {
    RunContext* const next = context->queue.next;
    const MemoryRange& range = RangeOf(*context);
    if (!IsTaken(*context, range) && !IsWaitedFor(*context, range)) {
      Unpark(*context);
      TakeFromLower(*context, range);
      context->queue.has_turn = true;
      ++kept_;
      taken_[taken_count_++] = {context, range};
      ready(*context);
    }
    context = next;
  }
}

void MemoryTurns::TakeFromLower(const RunContext& context,
                                const MemoryRange& range) {
  for (size_t i = taken_count_; i-- > 0;) {
    if (!taken_[i].range.Overlaps(range) ||
        !IsKeptForLower(taken_[i].context, context)) {
      continue;
    }
    taken_[i].context->queue.has_turn = false;
    --kept_;
    taken_[i] = taken_[--taken_count_];
  }
}

void MemoryTurns::GiveUp(const RunContext& context) {
  for (size_t i = 0; i < taken_count_; ++i) {
    if (taken_[i].context != &context) continue;
    taken_[i] = taken_[--taken_count_];
    return;
  }
}

}  // namespace rknnd::core
