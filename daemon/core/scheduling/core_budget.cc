// Called by a scheduler under its lock.

#include "daemon/core/scheduling/core_budget.h"

#include <bit>

#include "base/posix/hot_path.h"
#include "daemon/core/jobs/job.h"

namespace rknnd::core {
namespace {

ShareGroup* GroupOf(const RunContext& context) {
  Share* const share = context.traits().share.get();
  return share == nullptr ? nullptr : share->group();
}

// What the oldest job takes of all cores together.
base::Nanoseconds TimeOf(const RunContext& context) {
  const Job& job = *context.queue.first;
  return job.expected * (job.cores.gang ? std::popcount(job.cores.cores) : 1);
}

void Unlink(ShareGroup& group, RunContext& context) {
  ContextQueue& queue = context.queue;
  (queue.previous == nullptr ? group.first_held : queue.previous->queue.next) =
      queue.next;
  (queue.next == nullptr ? group.last_held : queue.next->queue.previous) =
      queue.previous;
  queue.previous = nullptr;
  queue.next = nullptr;
  queue.held = false;
}

}  // namespace

bool CoreBudget::Fits(base::Nanoseconds running,
                      const RunContext& context) const {
  return running == 0 || running + TimeOf(context) <= most_;
}

RKNND_HOT_PATH bool CoreBudget::MayStart(const RunContext& context) const {
  const ShareGroup* const group = GroupOf(context);
  return group == nullptr || group->is_alone() || Fits(group->running, context);
}

void CoreBudget::Hold(RunContext& context) {
  ShareGroup& group = *GroupOf(context);
  ContextQueue& queue = context.queue;
  queue.previous = group.last_held;
  (queue.previous == nullptr ? group.first_held : queue.previous->queue.next) =
      &context;
  group.last_held = &context;
  queue.held = true;
}

RKNND_HOT_PATH void CoreBudget::Start(const RunContext& context,
                                      base::Nanoseconds time) {
  if (ShareGroup* const group = GroupOf(context)) group->running += time;
}

RKNND_HOT_PATH void CoreBudget::End(const RunContext& context,
                                    base::Nanoseconds time, Ready ready) const {
  ShareGroup* const group = GroupOf(context);
  if (group == nullptr) return;
  group->running -= time;
  // Those that have waited longest, as many as fit; they may be held again
  // where others of the user's had their turn before them.
  base::Nanoseconds running = group->running;
  while (RunContext* const first = group->first_held) {
    if (!Fits(running, *first)) return;
    running += TimeOf(*first);
    Unlink(*group, *first);
    ready(*first);
  }
}

void CoreBudget::Forget(RunContext& context) {
  if (context.queue.held) Unlink(*GroupOf(context), context);
}

}  // namespace rknnd::core
