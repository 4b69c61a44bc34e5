// One rknn_run on its way through the daemon. Its memory is a slot of the
// session's gate, made once: nothing is allocated per job.
//
//   free --Submit--> queued --TakeNext--> running --OnJobDone--> free
//                      |
//                      +--context destroyed, session ended--> free

#ifndef DAEMON_CORE_JOB_H_
#define DAEMON_CORE_JOB_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "base/posix/clock.h"
#include "daemon/core/arenas.h"
#include "daemon/core/binding_set.h"
#include "daemon/core/memory_range.h"
#include "daemon/core/run_context.h"
#include "daemon/core/types.h"
#include "driver/device.h"

namespace rknnd::core {

class JobGateImpl;

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
  std::shared_ptr<JobGateImpl> gate;
  std::shared_ptr<RunContext> context;
  std::shared_ptr<const BindingSet> bindings;
  std::shared_ptr<Arena> arena;
  // Of the further cores of a gang that shares a batch.
  std::array<std::shared_ptr<Arena>, kGangArenas> gang_arenas = {};
  // Null but for a run that is dumped.
  std::shared_ptr<LayerDump> dump = nullptr;
};

// Owned by one at a time: the gate while free, the scheduler while queued, the
// runner while it runs; handed over under the lock of the receiver.
struct Job final : driver::JobListener {
  // Of the gate.
  bool in_flight = false;
  JobSubmission submission;
  base::Nanoseconds submitted = 0;
  JobHold hold;
  CoreChoice cores;
  // Memory that no other job may have while this one runs; of hold.bindings.
  const MemoryRange* alone = nullptr;

  // Of the scheduler.
  Job* next = nullptr;
  uint64_t ticket = 0;   // order of arrival
  uint32_t core = 0;     // the one it runs on; of a gang, the lowest
  uint32_t granted = 0;  // all it runs on, as bits

  // Of the runner.
  JobFinisher* finisher = nullptr;
  driver::JobRequest request;
  std::array<driver::Memory*, kGangArenas> gang_internal = {};

  void OnJobDone(driver::JobResult result) override {
    finisher->Finish(this, result);
  }
};

}  // namespace rknnd::core

#endif  // DAEMON_CORE_JOB_H_
