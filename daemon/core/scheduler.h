// Which job runs next, and where. Holds the queued jobs of all contexts and the
// tokens of all cores; a job that runs holds one token, a gang's several.
// Filled by gates, emptied by the runner.

#ifndef DAEMON_CORE_SCHEDULER_H_
#define DAEMON_CORE_SCHEDULER_H_

#include <cstdint>

#include "daemon/core/job.h"

namespace rknnd::core {

struct SchedulerCounts {
  uint64_t queued = 0, running = 0;
};

// Keeps for every implementation: jobs of one context run in the order of their
// submission and one at a time; a job runs on a core it allows, a gang's on all
// of its cores at once; a job whose core is busy holds up no job of another
// context; a gang's holds up younger ones, for as long as older ones run on a
// core of it; two jobs whose memory overlaps (Job::alone) never run at once
// (memory_turns.h), and the one that waits for it keeps no core.
//
// Thread: any. Allocates nothing, calls nothing. Lock order: a gate's lock,
// then the scheduler's.
class Scheduler {
 public:
  struct Turn {
    Job* job = nullptr;  // null: no queued job has its cores
    bool more = false;   // another one has, too
  };

  virtual ~Scheduler() = default;

  // Queues a job of job->hold.context. False when that context has as many
  // jobs as it may have; the job stays the caller's then.
  [[nodiscard]] virtual bool Enqueue(Job* job) = 0;
  // Grants the next job the tokens of job->granted, job->core among them.
  virtual Turn TakeNext() = 0;
  // The running job of `context` is over and gives back its tokens. True when
  // some job can run now.
  virtual bool Release(RunContext& context, uint32_t granted) = 0;
  // Takes out all queued jobs of `context`, oldest first, linked by `next`. A
  // running one stays.
  virtual Job* Cancel(RunContext& context) = 0;

  [[nodiscard]] virtual SchedulerCounts counts() const = 0;
};

}  // namespace rknnd::core

#endif  // DAEMON_CORE_SCHEDULER_H_
