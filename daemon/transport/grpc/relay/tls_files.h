// Whether the files of certificate, key and client_ca can be used: asked when
// the server starts, by --check-config, and again when one has changed.

#ifndef DAEMON_TRANSPORT_GRPC_RELAY_TLS_FILES_H_
#define DAEMON_TRANSPORT_GRPC_RELAY_TLS_FILES_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/transport/grpc/options.h"

namespace rknnd::transport {

// Owns what OpenSSL made.
template <class T, void (*Free)(T*)>
struct OpenSslDeleter {
  void operator()(T* object) const { Free(object); }
};

// Reads certificate, key and client_ca: INVALID_ARGUMENT for what is no PEM or
// does not belong together, FAILED_PRECONDITION for a key that others can read.
// The result tells what will trouble clients, as a certificate that has
// expired: no reason not to start, as a board may not know the date yet.
absl::StatusOr<std::vector<std::string>> CheckTlsFiles(
    const GrpcOptions& options);

}  // namespace rknnd::transport

#endif  // DAEMON_TRANSPORT_GRPC_RELAY_TLS_FILES_H_
