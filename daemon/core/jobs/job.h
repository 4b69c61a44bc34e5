// One rknn_run on its way through the daemon. Its memory is made with its
// session, one for each slot of the ring: nothing is allocated per job.

#ifndef DAEMON_CORE_JOBS_JOB_H_
#define DAEMON_CORE_JOBS_JOB_H_

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "base/posix/clock.h"
#include "daemon/core/contexts/binding_set.h"
#include "daemon/core/contexts/run_context.h"
#include "daemon/core/jobs/job_fences.h"
#include "daemon/core/jobs/job_limits.h"
#include "daemon/core/memory/arenas.h"
#include "daemon/core/memory/memory_range.h"
#include "daemon/core/terms/types.h"
#include "driver/device.h"

namespace rknnd::core {

class SessionJobs;
class SharedRun;

// Whom a device's answer goes to.
class JobFinisher {
 public:
  virtual ~JobFinisher() = default;
  virtual void Finish(Job* job, const driver::JobResult& result) = 0;
};

// So many further cores of a gang compute slices of a batch.
inline constexpr size_t kGangArenas = 7;

// What keeps a job's objects alive; dropped outside every lock.
struct JobHold {
  std::shared_ptr<SessionJobs> jobs;
  std::shared_ptr<RunContext> context;
  std::shared_ptr<const BindingSet> bindings;
  std::shared_ptr<Arena> arena;
  // Of the further cores of a gang that shares a batch.
  std::array<std::shared_ptr<Arena>, kGangArenas> gang_arenas = {};
  // Null but for a run that is dumped.
  std::shared_ptr<LayerDump> dump = nullptr;
  // Null but for one that answers several.
  std::shared_ptr<SharedRun> shared = nullptr;
  JobFences fences = {};
  // Null but for one that was answered before its end: it has no slot any more.
  std::shared_ptr<Job> detached = nullptr;
};

// A job that may be answered with another session's run, while it waits.
// Guarded by SharedRuns.
struct SharedPlace {
  Job* previous = nullptr;
  Job* next = nullptr;
  bool listed = false;
};

// A job's life. SessionJobs has a function for each arrow, by the name that
// stands beside it, and nobody else writes the state.
//
//              Enter                (it has cores)              Retire
//   kFree -----------> kInFlight - - - - - - - - > kInFlight ---------> kFree
//    ^ ^               (queued)                    (running)
//    | |                |    |                         |
//    | +-Refuse: -------+    | Claim: dropped, late,   | Detach: past its time,
//    |   no room             | cancelled, its context  | or it hangs: answered,
//    |                       v or session is gone      v and its slot is free
//    +------Retire------- kClaimed                 kDetached
//                                                      | Retire: deleted
//
// Which of the two a job in flight is, the scheduler knows: it is queued while
// Scheduler::Remove takes it out. Whoever moves it on from kInFlight, under the
// lock of its session's jobs, gives its only answer.
enum class JobState : uint8_t { kFree, kInFlight, kClaimed, kDetached };

// A job's place among those that must have been answered by some time. Of
// Expiry, under its lock.
struct ExpiryNode {
  base::Nanoseconds when = 0;
  bool linked = false;
  // A heap: the first of its children, the next of its parent's, and its parent
  // if it is the first or else the one before it.
  Job* child = nullptr;
  Job* sibling = nullptr;
  Job* previous = nullptr;
};

// What a job may take on its cores before it is said to hang: the configured
// limit, but never less than 20 times what it was expected to take. A slow CPU
// is no hung NPU.
inline base::Nanoseconds HangLimit(base::Nanoseconds configured,
                                   base::Nanoseconds expected) {
  constexpr base::Nanoseconds kTimes = 20;
  return std::max(configured, expected * kTimes);
}

// Its life is SessionJobs'. What stands in it for others (their places in
// lists, what they have decided) is theirs: the scheduler's while it is queued,
// the runner's while it runs, and whoever's that claimed it.
struct Job final : driver::JobListener {
  // Only SessionJobs writes these, under its lock.
  JobState state = JobState::kFree;
  uint64_t serial = 0;  // tells it from others that had the slot
  // Neighbours among those of its context in flight, by age.
  Job* earlier = nullptr;
  Job* later = nullptr;

  // The gate writes these as it lets the job enter; then they stay.
  JobSubmission submission;
  base::Nanoseconds submitted = 0;
  JobLimits limits;
  JobHold hold;
  CoreChoice cores;
  // Not to be run before Scheduler::Unhold, which clears it.
  std::atomic<bool> waits_for_fence{false};
  // Nobody waits for its answer or its run any more: the device may end it.
  std::atomic<bool> unwanted{false};
  // Memory that no other job may have while this one runs; of hold.bindings.
  const MemoryRange* alone = nullptr;

  // Of the scheduler.
  Job* next = nullptr;
  uint64_t ticket = 0;             // order of arrival
  base::Nanoseconds expected = 0;  // run, on the cores it asks for
  // These two are read by others only where `begun` is set: until then the
  // scheduler may take them back (PutBack).
  uint32_t core = 0;     // the one it runs on; of a gang, the lowest
  uint32_t granted = 0;  // all it runs on, as bits

  ExpiryNode expiry;

  // Of SharedRuns.
  SharedPlace shared;
  // Its turn came while an equal run was on its way, for which it waits in its
  // place: as good as begun. Written under SharedRuns' lock, read by any.
  std::atomic<bool> joined{false};

  // Of the runner.
  JobFinisher* finisher = nullptr;
  // Since when it has its cores; 0: not yet. Written by the runner when all of
  // the job is as it stays until its end; read by who asks how long it runs.
  std::atomic<base::Nanoseconds> begun{0};
  driver::JobRequest request;
  std::array<driver::Memory*, kGangArenas> gang_internal = {};

  void OnJobDone(driver::JobResult result) override {
    finisher->Finish(this, result);
  }
};

}  // namespace rknnd::core

#endif  // DAEMON_CORE_JOBS_JOB_H_
