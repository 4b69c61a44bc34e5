// Where the gRPC server listens: what the configuration says, resolved, checked
// against the rule for plain text, then opened. Used by the server and by
// --check-config, before anything listens.

#ifndef DAEMON_TRANSPORT_GRPC_RELAY_ADDRESSES_H_
#define DAEMON_TRANSPORT_GRPC_RELAY_ADDRESSES_H_

#include <sys/socket.h>

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/posix/unique_fd.h"
#include "daemon/transport/grpc/options.h"

namespace rknnd::transport {

// One that can be listened on.
struct GrpcAddress {
  std::string configured;  // as it was written, for messages
  std::string path;        // of a Unix socket; empty: TCP
  sockaddr_storage socket{};
  socklen_t size = 0;

  [[nodiscard]] bool local() const { return !path.empty(); }
  // Whether only this machine can reach it.
  [[nodiscard]] bool loopback() const;
};

// All of options.addresses; a host name may stand for several. INVALID_ARGUMENT
// for what is no address, FAILED_PRECONDITION for plain text beyond loopback.
absl::StatusOr<std::vector<GrpcAddress>> ResolveGrpcAddresses(
    const GrpcOptions& options);

struct GrpcListener {
  base::UniqueFd fd;
  std::string name;  // "ipv4:127.0.0.1:43211", "unix:/run/rknnd/grpc.sock"
  std::string path;  // to be removed at the end; empty: TCP
};

// Where port 0 was asked for, the kernel has chosen one; all addresses of one
// configured host name get the same.
absl::StatusOr<std::vector<GrpcListener>> ListenOnAll(
    std::vector<GrpcAddress> addresses, base::Nanoseconds dead_after);

// "ipv4:192.0.2.7:40112", "ipv6:[2001:db8::1]:40112", or "unix:".
std::string NameOf(const sockaddr_storage& socket);

}  // namespace rknnd::transport

#endif  // DAEMON_TRANSPORT_GRPC_RELAY_ADDRESSES_H_
