// The server's certificate and whom it asks for one. Files are checked when the
// server starts, and read again while it runs, so that a renewed certificate
// needs no restart. No gRPC in this header.

#ifndef DAEMON_TRANSPORT_GRPC_TLS_H_
#define DAEMON_TRANSPORT_GRPC_TLS_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/transport/grpc/options.h"

namespace grpc {
class ServerCredentials;
}  // namespace grpc

namespace rknnd::transport {

// Reads certificate, key and client_ca: INVALID_ARGUMENT for what is no PEM or
// does not belong together, FAILED_PRECONDITION for a key that others can read.
// The result tells what will trouble clients, as a certificate that has
// expired: no reason not to start, as a board may not know the date yet.
absl::StatusOr<std::vector<std::string>> CheckTlsFiles(
    const GrpcOptions& options);

// What TCP connections are served with.
std::shared_ptr<grpc::ServerCredentials> TcpCredentials(
    const GrpcOptions& options);

}  // namespace rknnd::transport

#endif  // DAEMON_TRANSPORT_GRPC_TLS_H_
