// Contexts that share internal memory take turns: what a program gave to
// several contexts (rknn_set_internal_mem) is one job's at a time, whatever
// cores are free and whichever sessions they belong to. Used by schedulers.
//
//   a scheduler's list --MayStart: no--> parked --End, Forget--> the list again
//          |                                (with its place, and the memory
//          |                                 kept for it until it has run)
//          +--MayStart: yes, Start--> running --End
//
// Memory goes to the highest class that waits for it, there to the oldest. What
// waits for its core with the memory kept for it waits for jobs that run, or
// whose turn is earlier, and never for another one that waits like this: nobody
// waits for ever. A higher class takes memory that is only kept.

#ifndef DAEMON_CORE_SCHEDULING_MEMORY_TURNS_H_
#define DAEMON_CORE_SCHEDULING_MEMORY_TURNS_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/functional/function_ref.h"
#include "daemon/core/jobs/job.h"
#include "daemon/core/memory/memory_range.h"

namespace rknnd::core {

// A context whose oldest job has no memory to share (Job::alone is null) costs
// a look. Thread: any, under its scheduler's lock; allocates nothing.
class MemoryTurns {
 public:
  // A context that may run again, to be put into the scheduler's list.
  using Ready = absl::FunctionRef<void(RunContext&)>;

  // Whether the oldest job of `context` may start as far as memory goes.
  [[nodiscard]] bool MayStart(const RunContext& context) const {
    return context.queue.first->alone == nullptr || IsFree(context);
  }
  // The scheduler took `context` out of its list, because MayStart said no.
  void Park(RunContext& context);
  // `job`, which was its context's oldest, runs.
  void Start(const Job& job);
  // The running job of `context` is over.
  void End(RunContext& context, Ready ready);
  // All queued jobs of `context` are about to go. True when it was parked, and
  // so is in no list of the scheduler.
  bool Forget(RunContext& context, Ready ready);

 private:
  // Memory that is in use, or kept for one that was parked.
  struct Taken {
    RunContext* context = nullptr;
    MemoryRange range;
  };
  // As many as there are cores may run, and no more need be kept.
  static constexpr size_t kCores = 32;
  // How far down the list of those who wait one looks. Beyond it they have
  // their turn when older ones had theirs.
  static constexpr size_t kLooks = 64;

  [[nodiscard]] bool IsFree(const RunContext& context) const;
  // What was kept for lower classes is so no longer.
  void TakeFromLower(const RunContext& context, const MemoryRange& range);
  [[nodiscard]] bool IsTaken(const RunContext& context,
                             const MemoryRange& range) const;
  // Whether somebody waits for it who comes before.
  [[nodiscard]] bool IsWaitedFor(const RunContext& context,
                                 const MemoryRange& range) const;
  void Unpark(RunContext& context);
  void Give(Ready ready);
  void GiveUp(const RunContext& context);

  std::array<Taken, 2 * kCores> taken_;
  size_t taken_count_ = 0;
  size_t kept_ = 0;  // of them, for contexts that do not run yet
  // Linked by ContextQueue, by class and age.
  RunContext* first_ = nullptr;
  RunContext* last_ = nullptr;
};

}  // namespace rknnd::core

#endif  // DAEMON_CORE_SCHEDULING_MEMORY_TURNS_H_
