// The gate through which a session's jobs enter: checks a submission against
// the session's contexts and hands it to the scheduler. The only part of a
// session that workers touch.

#ifndef DAEMON_CORE_RUNNING_JOB_GATE_H_
#define DAEMON_CORE_RUNNING_JOB_GATE_H_

#include "absl/status/status.h"
#include "daemon/core/terms/types.h"

namespace rknnd::core {

// Thread: worker (Submit: one at a time, under the transport's ring lock).
class JobGate {
 public:
  virtual ~JobGate() = default;

  // Queues one job; its completion goes to the session's sink, whatever
  // becomes of it, so that OK only means "understood". A wrong context, an
  // unbound tensor or a full queue is answered there too.
  // FAILED_PRECONDITION: a slot still in flight or out of range was named, or
  // the session has ended. The peer breaks the protocol and is disconnected.
  // Allocates nothing when it succeeds.
  virtual absl::Status Submit(const JobSubmission& submission) = 0;
};

}  // namespace rknnd::core

#endif  // DAEMON_CORE_RUNNING_JOB_GATE_H_
