// Entries of the ring that their caller waits for: into it, and again into the
// next daemon's when the one that had them died or takes no new work.

#ifndef CLIENT_SESSION_RUN_CALLS_H_
#define CLIENT_SESSION_RUN_CALLS_H_

#include <cstdint>

#include "base/posix/clock.h"
#include "base/values/expected.h"
#include "client/session/connection.h"
#include "client/session/fence_table.h"
#include "client/session/link.h"
#include "client/session/pending_runs.h"
#include "client/target/types.h"

namespace rknnd::client {

// Thread: any.
class RunCalls {
 public:
  // All of them outlive this.
  RunCalls(const SessionOptions& options, SessionLink& link, FenceTable& fences,
           PendingRuns& runs)
      : options_(options), link_(link), fences_(fences), runs_(runs) {}

  // As Target's.
  base::Expected<RunReport> Run(const RunRequest& request);
  base::Expected<uint32_t> Cancel(uint32_t context, uint64_t frame);

 private:
  // An entry, until its answer is there, whatever becomes of daemons.
  base::Expected<Answer> Put(const wire::Submission& job);
  // One job, put to one daemon.
  // kMayHaveKilled: it died, and the job was on a core.
  enum class RunEnd : uint8_t {
    kAnswered,
    kDaemonDied,
    kMayHaveKilled,
    kTimedOut
  };
  // `now`: of a moment ago.
  RunEnd RunOn(Connection& connection, const wire::Submission& job,
               base::Nanoseconds now, base::Nanoseconds deadline,
               Answer* answer);

  const SessionOptions& options_;
  const base::MonotonicClock clock_;
  SessionLink& link_;
  FenceTable& fences_;
  PendingRuns& runs_;
};

}  // namespace rknnd::client

#endif  // CLIENT_SESSION_RUN_CALLS_H_
