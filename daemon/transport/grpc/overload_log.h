// What the log says when more is asked of the gRPC port than can be done: one
// line a second with counts, in place of one for each request. Told by the
// endpoints.

#ifndef DAEMON_TRANSPORT_GRPC_OVERLOAD_LOG_H_
#define DAEMON_TRANSPORT_GRPC_OVERLOAD_LOG_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "base/posix/event_loop.h"
#include "base/posix/mutex.h"
#include "daemon/transport/session/event_log.h"

namespace rknnd::transport {

// Thread: any.
class OverloadLog {
 public:
  // Lines are written on `loop`, which may be any thread's. Both outlive it;
  // `loop` runs no task of it after.
  OverloadLog(base::EventLoop* loop, FailureLog* failures)
      : loop_(loop), failures_(failures) {}

  // Whether a status is of an overload: RESOURCE_EXHAUSTED, DEADLINE_EXCEEDED.
  static bool Is(const absl::Status& status);
  // A request that ended so. `who`: GrpcPeer::account.
  void Count(const std::string& who, const absl::Status& status);

 private:
  struct Counts {
    uint64_t refused = 0, late = 0;
    std::string last;  // who, and in what words
  };

  void WriteLine();

  base::EventLoop* const loop_;
  FailureLog* const failures_;
  base::Mutex mutex_;
  Counts counts_ RKNND_GUARDED_BY(mutex_);
  bool armed_ RKNND_GUARDED_BY(mutex_) = false;  // a line will be written
};

}  // namespace rknnd::transport

#endif  // DAEMON_TRANSPORT_GRPC_OVERLOAD_LOG_H_
