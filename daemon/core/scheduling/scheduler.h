// Which job runs next, and where. Holds the queued jobs of all contexts and the
// tokens of all cores; a job that runs holds one token, a gang's several.
// Filled by gates, emptied by the runner. Strict priority classes, inside a
// class fair queueing of NPU time between processes (share.h), gangs, lent
// cores.

#ifndef DAEMON_CORE_SCHEDULING_SCHEDULER_H_
#define DAEMON_CORE_SCHEDULING_SCHEDULER_H_

#include <array>
#include <cstdint>

#include "absl/functional/function_ref.h"
#include "base/posix/clock.h"
#include "base/posix/mutex.h"
#include "daemon/core/accounts/share.h"
#include "daemon/core/jobs/job.h"
#include "daemon/core/scheduling/core_budget.h"
#include "daemon/core/scheduling/memory_turns.h"
#include "daemon/core/scheduling/waiting_lines.h"
#include "daemon/core/terms/types.h"

namespace rknnd::core {

struct SchedulerCounts {
  uint64_t queued = 0, running = 0;
};

// Jobs of one context run in the order of their submission and one at a time; a
// job runs on a core it allows, a gang's on all of its cores at once; a job
// whose core is busy holds up no job of another context that could run
// elsewhere; two jobs whose memory overlaps (Job::alone) never run at once
// (memory_turns.h), and the one that waits for it keeps no core; a user's jobs
// have no more of the cores at once than CoreBudget gives.
//
// A job's class is its context's priority: HIGH before MEDIUM before LOW.
//
// Inside a class the share goes first that has had least NPU time (cores x
// time) over its weight. A job is charged what its run is expected to take as
// it begins, and what it took when it ends; so shares that wait all the time
// and may use the same cores have had the same, but for one job's time each.
// Who comes back from a pause counts as having had what those have who were
// served meanwhile, but for one of their jobs, or 100 ms. Inside a share the
// context goes first whose oldest job is the oldest.
//
// Starvation bound. A share's jobs of one class and core mask that may run
// (their context runs nothing, their fence is signalled, their memory is free)
// and of which none was begun for SchedulingOptions::starvation_bound get one
// begun before anybody else's. It has its turn early enough to begin within the
// bound, if runs take as long as expected and no run is longer than 1 / (6 n)
// of the bound, n being how many such groups wait so long at once; beyond that
// they have their turns by how long they wait, from half of the bound on.
// Between two turns of this kind one in the common order comes, so that no
// crowd of low jobs turns the order round.
//
// Gangs. A gang at its turn gathers its cores as they become free: jobs of its
// class and below begin there only where they are expected to end before the
// last of the gang's cores does. Gangs that wait follow each other, so that
// cores are drained once for several, until they have had kGangLead more
// than the next in turn. A core whose job hangs is nothing to wait for: the
// gang keeps no core until that one is back.
//
//   core 0  | a        |·· b ··| gang          |        b is expected to end
//   core 1  | c                | gang          |        before c does
//
// Long jobs. While several users are connected, what one user's running jobs
// are expected to take is at most a bound of starvation for each core, or is
// one job (core_budget.h): the others find a core. A job that is expected to
// take more than SchedulingOptions::longest_run of its cores together is
// refused.
//
// A batch's job without a core mask has further cores that are free and nobody
// waits for.
//
// Equal histories give equal turns. A turn costs a look at each core mask, and
// the logarithm of how many shares and contexts wait; who does not wait costs
// nothing.
//
// Allocates nothing, calls nothing. Thread: any. Lock order: a session's jobs'
// lock, then the scheduler's, which is a leaf.
class Scheduler {
 public:
  struct Turn {
    Job* job = nullptr;  // null: no queued job has its cores
    bool more = false;   // another one has, too
  };
  enum class Entry {
    kQueued,
    kFull,  // the context has as many jobs as it may have
    kLent,  // it could run on cores only that are lent out
    kLong,  // it is expected to take longer than any job may
  };

  // Job::cores is one core's bit, those of all `cores`, or as a gang those of
  // the first two or more.
  Scheduler(uint32_t cores, uint32_t jobs_per_context,
            const SchedulingOptions& options, const base::Clock* clock);

  // Queues a job of job->hold.context, or says why not; it stays the caller's
  // then.
  [[nodiscard]] Entry Enqueue(Job* job);
  // Grants the next job the tokens of job->granted, job->core among them.
  Turn TakeNext();
  // The running job of `context` is over, was `used` on its cores and gives
  // back their tokens. True when some job can run now.
  bool Release(RunContext& context, uint32_t granted, base::Nanoseconds used);
  // Takes out all queued jobs of `context`, oldest first, linked by `next`. A
  // running one stays.
  Job* Cancel(RunContext& context);
  // The same of those that could run on lent cores only.
  Job* CancelLent(RunContext& context);

  // Takes one queued job out; false when it is not queued (any more). The next
  // one of its context takes its place in the order of turns: where a newer
  // frame replaces an older one, queue that first.
  bool Remove(Job* job);
  // A job was queued with Job::waits_for_fence set, which kept it and those of
  // its context behind it from running, and may run now. True when some job
  // can. Nothing happens to one that is not queued (any more).
  bool Unhold(Job* job);
  // Takes a queued job, held or not, that is the next of its context, as if it
  // were granted no core: it counts as running until Release(context, 0, 0).
  // False when it is not queued (any more), or another one of its context runs
  // or comes first. (For SharedRuns, as the next one.)
  bool Claim(Job* job);
  // A job that TakeNext has just granted does not run now: it is the next of
  // its context again, held as by Job::waits_for_fence, and gives back its
  // tokens as if it had never had them. True when some job can run now.
  bool PutBack(Job* job);
  // No job is begun on these cores from now on, until the next call. Jobs that
  // run there end. True when some job can run now.
  bool SetLent(uint32_t cores);

  // Whether some queued job could begin now: then a worker is on its way to it.
  [[nodiscard]] bool CanBegin();
  // Cores that some job has, as bits.
  [[nodiscard]] uint32_t busy() const;

  [[nodiscard]] SchedulerCounts counts() const;

  // Of the share's NPU time.
  static constexpr base::Nanoseconds kGangLead = 100 * base::kMillisecond;

 private:
  static constexpr uint32_t kMostCores = 32;

  // What runs on a core.
  struct Running {
    base::Nanoseconds since = 0, expected = 0;
    uint64_t charge = 0;  // of virtual time
    Priority priority = Priority::kMedium;
  };
  // Whose oldest job begins next, on one of `cores` or all of them.
  struct Choice {
    RunContext* context = nullptr;
    uint32_t cores = 0;
    bool in_order = false;  // of virtual time
    bool due = false;       // by the starvation bound
  };

  void MakeReady(RunContext& context) RKNND_REQUIRES(mutex_);
  // Out of whatever it waits in, before its oldest job goes.
  void Withdraw(RunContext& context) RKNND_REQUIRES(mutex_);
  void RemoveReady(RunContext& context) RKNND_REQUIRES(mutex_);
  // Takes the queued jobs that are `chosen` out of their context.
  Job* TakeOut(RunContext& context, absl::FunctionRef<bool(const Job&)> chosen)
      RKNND_REQUIRES(mutex_);
  // The oldest goes, the next one has its place: if that is the same.
  bool Replace(RunContext& context) RKNND_REQUIRES(mutex_);
  [[nodiscard]] bool OnLentOnly(const CoreChoice& choice) const
      RKNND_REQUIRES(mutex_);

  // What has to wait for memory is parked, what has to wait for core time is
  // held.
  Choice Find(base::Nanoseconds now) RKNND_REQUIRES(mutex_);
  // Whether it has to wait neither for memory nor for core time; else it does
  // so from now on, and is in no line.
  bool MayStart(RunContext& context) RKNND_REQUIRES(mutex_);
  // The job of `context` has these cores no longer; none: it had none. Those
  // who waited for its memory or core time are back in their lines.
  void GiveBack(RunContext& context, uint32_t granted) RKNND_REQUIRES(mutex_);
  // Among those who may run as far as cores go.
  Choice Choose(base::Nanoseconds now, uint32_t available, RunContext* gang)
      RKNND_REQUIRES(mutex_);
  // The first in turn of those that take one of `cores`.
  [[nodiscard]] RunContext* FirstSingle(uint32_t cores) const
      RKNND_REQUIRES(mutex_);
  // The same of those whose run is expected to take no more than `room`.
  [[nodiscard]] RunContext* FirstThatFits(uint32_t cores,
                                          base::Nanoseconds room) const
      RKNND_REQUIRES(mutex_);
  // The gang that gathers, or might; null: none can now.
  RunContext* FirstGang(base::Nanoseconds now) RKNND_REQUIRES(mutex_);
  [[nodiscard]] bool Precedes(const RunContext& a, const RunContext& b) const
      RKNND_REQUIRES(mutex_);
  // Whether the gang may go before `single` because its cores are there.
  [[nodiscard]] bool MayLead(const RunContext& gang,
                             const RunContext& single) const
      RKNND_REQUIRES(mutex_);
  // Who would wait beyond the bound if something of length `longest` began
  // instead; null: nobody that could begin or gather now.
  [[nodiscard]] Line* FindDue(base::Nanoseconds now, uint32_t available,
                              base::Nanoseconds longest) const
      RKNND_REQUIRES(mutex_);
  [[nodiscard]] uint32_t ChooseCore(uint32_t cores) const
      RKNND_REQUIRES(mutex_);
  // What a batch's job gets beside its core.
  [[nodiscard]] uint32_t SpareFor(const Job& job) const RKNND_REQUIRES(mutex_);
  [[nodiscard]] uint64_t LeastFor(const RunContext& context) const
      RKNND_REQUIRES(mutex_);
  void Begin(const Choice& choice, Job* job, base::Nanoseconds now)
      RKNND_REQUIRES(mutex_);

  // Whether a gang of these cores has one that is lent or hangs.
  [[nodiscard]] bool Lacks(uint32_t mask, base::Nanoseconds now) const
      RKNND_REQUIRES(mutex_);
  // When the last of these cores is expected to be free, from now on.
  [[nodiscard]] base::Nanoseconds UntilFree(uint32_t mask,
                                            base::Nanoseconds now) const
      RKNND_REQUIRES(mutex_);

  const uint32_t cores_;
  const uint32_t all_;  // as bits
  const uint32_t jobs_per_context_;
  const base::Nanoseconds bound_, hang_, longest_run_;
  const base::Clock& clock_;

  mutable base::Mutex mutex_;
  Share nobody_ RKNND_GUARDED_BY(mutex_);
  WaitingLines lines_ RKNND_GUARDED_BY(mutex_);
  MemoryTurns turns_ RKNND_GUARDED_BY(mutex_);
  const CoreBudget core_budget_;
  uint32_t free_ RKNND_GUARDED_BY(mutex_);  // cores, as bits
  uint32_t lent_ RKNND_GUARDED_BY(mutex_) = 0;
  std::array<Running, kMostCores> running_ RKNND_GUARDED_BY(mutex_);
  // The most that anybody had who was begun with in turn, by class and core.
  std::array<std::array<uint64_t, kMostCores>, kPriorities> levels_
      RKNND_GUARDED_BY(mutex_) = {};
  // For whose oldest job cores are kept, and whether by the starvation bound.
  RunContext* gathering_ RKNND_GUARDED_BY(mutex_) = nullptr;
  bool gathering_due_ RKNND_GUARDED_BY(mutex_) = false;
  bool due_last_ RKNND_GUARDED_BY(mutex_) = false;
  // Of the runs begun within about the bound, as expected; and of those before.
  base::Nanoseconds longest_ RKNND_GUARDED_BY(mutex_) = 0;
  base::Nanoseconds longest_before_ RKNND_GUARDED_BY(mutex_) = 0;
  base::Nanoseconds longest_since_ RKNND_GUARDED_BY(mutex_) = 0;
  uint64_t next_ticket_ RKNND_GUARDED_BY(mutex_) = 0;
  SchedulerCounts counts_ RKNND_GUARDED_BY(mutex_);
};

}  // namespace rknnd::core

#endif  // DAEMON_CORE_SCHEDULING_SCHEDULER_H_
