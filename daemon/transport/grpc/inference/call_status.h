// Between absl's statuses and gRPC's, whose codes are the same; and deadlines
// of calls by our clock. For the source files that include gRPC.

#ifndef DAEMON_TRANSPORT_GRPC_INFERENCE_CALL_STATUS_H_
#define DAEMON_TRANSPORT_GRPC_INFERENCE_CALL_STATUS_H_

#include "absl/status/status.h"
#include "base/posix/clock.h"

namespace grpc {
class ServerContextBase;
class Status;
}  // namespace grpc

namespace rknnd::transport {

grpc::Status ToGrpc(const absl::Status& status);

// InferenceRun::kNoDeadline where the client set none.
base::Nanoseconds DeadlineOf(const grpc::ServerContextBase& context,
                             const base::Clock& clock);

}  // namespace rknnd::transport

#endif  // DAEMON_TRANSPORT_GRPC_INFERENCE_CALL_STATUS_H_
