// What gRPC and libprotobuf themselves have to say goes to the daemon's log, a
// few lines a second at most: peers cause much of it (handshakes that fail,
// frames that are none, strings that are no UTF-8).

#ifndef DAEMON_TRANSPORT_GRPC_GRPC_LOG_H_
#define DAEMON_TRANSPORT_GRPC_GRPC_LOG_H_

#include "daemon/transport/session/event_log.h"

namespace rknnd::transport {

// While one lives, their errors go to `failures`. There is one at a time.
// Thread: any.
class GrpcLog {
 public:
  explicit GrpcLog(FailureLog* failures);
  ~GrpcLog();
  GrpcLog(const GrpcLog&) = delete;
  GrpcLog& operator=(const GrpcLog&) = delete;
};

}  // namespace rknnd::transport

#endif  // DAEMON_TRANSPORT_GRPC_GRPC_LOG_H_
