// The gRPC server, from a library that is loaded only when it is asked for: it
// brings dozens of others along, and their memory. Used by main.

#ifndef DAEMON_NETWORK_GRPC_LIBRARY_H_
#define DAEMON_NETWORK_GRPC_LIBRARY_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/transport/grpc/environment.h"
#include "daemon/transport/grpc/options.h"
#include "daemon/transport/grpc/server.h"

namespace rknnd {

// How gRPC reads large messages, which it takes from the environment only; what
// somebody has set there stays. Before the first thread.
void PrepareGrpc();

// As transport::GrpcServer's. FAILED_PRECONDITION, and how to get it, when the
// library is not there. It is never unloaded.
absl::Status CheckGrpcServer(const transport::GrpcOptions& options);
absl::StatusOr<std::unique_ptr<transport::GrpcServer>> StartGrpcServer(
    const transport::GrpcOptions& options,
    const transport::GrpcEnvironment& environment);

}  // namespace rknnd

#endif  // DAEMON_NETWORK_GRPC_LIBRARY_H_
