// Between absl's statuses and gRPC's, whose codes are the same; deadlines of
// calls by our clock; and when to come again. For the source files that include
// gRPC.

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

// Tells a client that is refused when to try again, in the way that gRPC's own
// retries understand. Before Finish.
void TellToComeAgain(grpc::ServerContextBase& context, base::Nanoseconds after);

// InferenceRun::kNoDeadline where the client set none.
base::Nanoseconds DeadlineOf(const grpc::ServerContextBase& context,
                             const base::Clock& clock);

}  // namespace rknnd::transport

#endif  // DAEMON_TRANSPORT_GRPC_INFERENCE_CALL_STATUS_H_
