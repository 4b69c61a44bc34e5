// The daemon's gRPC server: its addresses, its endpoints, its health. Made and
// ended on the loop's thread; calls run on gRPC's own threads, which are at a
// lower priority than those that serve local clients.

#ifndef DAEMON_TRANSPORT_GRPC_SERVER_H_
#define DAEMON_TRANSPORT_GRPC_SERVER_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/transport/grpc/environment.h"
#include "daemon/transport/grpc/options.h"

namespace rknnd::transport {

// Thread: loop.
class GrpcServer {
 public:
  virtual ~GrpcServer() = default;

  // Whether Start could, as far as that is known without starting: addresses,
  // certificates, tokens, limits.
  static absl::Status Check(const GrpcOptions& options);
  // `environment` without authenticator, budget and deliveries, which are the
  // server's.
  static absl::StatusOr<std::unique_ptr<GrpcServer>> Start(
      const GrpcOptions& options, const GrpcEnvironment& environment);

  // As configured, with the ports that the kernel chose where 0 was asked for.
  [[nodiscard]] virtual std::vector<std::string> addresses() const = 0;
  // Health says NOT_SERVING, new work is refused, what runs goes on.
  virtual void SetDraining(bool draining) = 0;
  // Ends all calls and connections. Called once, before destruction.
  virtual void Stop() = 0;
};

}  // namespace rknnd::transport

#endif  // DAEMON_TRANSPORT_GRPC_SERVER_H_
