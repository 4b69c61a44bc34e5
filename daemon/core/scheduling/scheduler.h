// Which job runs next, and where. Holds the queued jobs of all contexts and the
// tokens of all cores; a job that runs holds one token, a gang's several.
// Filled by gates, emptied by the runner.

#ifndef DAEMON_CORE_SCHEDULING_SCHEDULER_H_
#define DAEMON_CORE_SCHEDULING_SCHEDULER_H_

#include <cstdint>

#include "base/posix/clock.h"
#include "daemon/core/jobs/job.h"

namespace rknnd::core {

struct SchedulerCounts {
  uint64_t queued = 0, running = 0;
};

// Keeps for every implementation: jobs of one context run in the order of their
// submission and one at a time; a job runs on a core it allows, a gang's on all
// of its cores at once; a job whose core is busy holds up no job of another
// context that could run elsewhere; two jobs whose memory overlaps (Job::alone)
// never run at once (memory_turns.h), and the one that waits for it keeps no
// core; a user's jobs have no more of the cores at once than CoreBudget gives.
//
// Thread: any. Allocates nothing, calls nothing. Lock order: a session's jobs'
// lock, then the scheduler's.
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

  virtual ~Scheduler() = default;

  // Queues a job of job->hold.context, or says why not; it stays the caller's
  // then.
  [[nodiscard]] virtual Entry Enqueue(Job* job) = 0;
  // Grants the next job the tokens of job->granted, job->core among them.
  virtual Turn TakeNext() = 0;
  // The running job of `context` is over, was `used` on its cores and gives
  // back their tokens. True when some job can run now.
  virtual bool Release(RunContext& context, uint32_t granted,
                       base::Nanoseconds used) = 0;
  // Takes out all queued jobs of `context`, oldest first, linked by `next`. A
  // running one stays.
  virtual Job* Cancel(RunContext& context) = 0;
  // The same of those that could run on lent cores only.
  virtual Job* CancelLent(RunContext& context) = 0;

  // Takes one queued job out; false when it is not queued (any more). The next
  // one of its context takes its place in the order of turns: where a newer
  // frame replaces an older one, queue that first.
  virtual bool Remove(Job* job) = 0;
  // A job was queued with Job::waits_for_fence set, which kept it and those of
  // its context behind it from running, and may run now. True when some job
  // can. Nothing happens to one that is not queued (any more).
  virtual bool Unhold(Job* job) = 0;
  // Takes a queued job, held or not, that is the next of its context, as if it
  // were granted no core: it counts as running until Release(context, 0, 0).
  // False when it is not queued (any more), or another one of its context runs
  // or comes first. (For SharedRuns, as the next one.)
  virtual bool Claim(Job* job) = 0;
  // A job that TakeNext has just granted does not run now: it is the next of
  // its context again, held as by Job::waits_for_fence, and gives back its
  // tokens as if it had never had them. True when some job can run now.
  virtual bool PutBack(Job* job) = 0;
  // No job is begun on these cores from now on, until the next call. Jobs that
  // run there end. True when some job can run now.
  virtual bool SetLent(uint32_t cores) = 0;

  // Whether some queued job could begin now: then a worker is on its way to it.
  [[nodiscard]] virtual bool CanBegin() = 0;
  // Cores that some job has, as bits.
  [[nodiscard]] virtual uint32_t busy() const = 0;

  [[nodiscard]] virtual SchedulerCounts counts() const = 0;
};

}  // namespace rknnd::core

#endif  // DAEMON_CORE_SCHEDULING_SCHEDULER_H_
