// What decides about jobs, one of each for all sessions. The runner has them;
// gates ask as jobs enter, and JobEnds as they end.

#ifndef DAEMON_CORE_RUNNING_POLICIES_H_
#define DAEMON_CORE_RUNNING_POLICIES_H_

#include <cstdint>

#include "base/posix/clock.h"
#include "daemon/core/jobs/expiry.h"
#include "daemon/core/running/attribution.h"
#include "daemon/core/running/fence_waits.h"
#include "daemon/core/running/shared_runs.h"
#include "daemon/core/scheduling/leases.h"
#include "daemon/core/scheduling/scheduler.h"
#include "daemon/core/terms/types.h"

namespace rknnd::core {

struct Policies {
  const base::Clock* clock = nullptr;
  WorkerWaker* waker = nullptr;
  Scheduler* scheduler = nullptr;
  SharedRuns* shared_runs = nullptr;  // null: no run is shared
  FenceWaits* fence_waits = nullptr;
  Expiry* expiry = nullptr;
  Attribution* attribution = nullptr;
  const LeasedCores* leased = nullptr;
  // Of a job without any other limit that waits for a fence.
  base::Nanoseconds fence_timeout = 10 * base::kSecond;
  // Submitted and not answered. The scheduler has room for one more: its place
  // is free a moment after the answer, or when it comes back late.
  uint32_t jobs_per_context = 32;
};

}  // namespace rknnd::core

#endif  // DAEMON_CORE_RUNNING_POLICIES_H_
