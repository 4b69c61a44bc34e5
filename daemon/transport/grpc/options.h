// What the gRPC server is told ([grpc] of the configuration, --grpc,
// --grpc-insecure): where it listens, whom it lets in, how much it takes.

#ifndef DAEMON_TRANSPORT_GRPC_OPTIONS_H_
#define DAEMON_TRANSPORT_GRPC_OPTIONS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "base/posix/clock.h"

namespace rknnd::transport {

// What a peer may do.
//   kNone      nothing
//   kUser      run models, load them, look: what a client of session.sock may
//   kOperator  also what changes things for others, as on admin.sock
enum class GrpcRole : uint8_t { kNone, kUser, kOperator };

struct GrpcOptions {
  // "HOST:PORT", "[V6]:PORT" or "unix:PATH" (mode 0600: its peers are
  // operators). Empty: no server.
  std::vector<std::string> addresses;
  // TCP without TLS also beyond loopback, and whoever comes without a token is
  // an operator.
  bool insecure = false;
  // PEM files. With a certificate every TCP address speaks TLS.
  std::string certificate, key;
  // Who signs clients' certificates. Set: a client without one is turned away,
  // and one whose subject is in `operators` is an operator.
  std::string client_ca;
  std::vector<std::string> operators;
  // A file of lines "ROLE NAME TOKEN" (user or operator), not readable by
  // others. Set: a peer without one of them is turned away, unless it has a
  // client certificate.
  std::string tokens;

  // Limits. What they have no room for waits unread, as far as that has a
  // limit, and is RESOURCE_EXHAUSTED then.
  uint64_t message_bytes = uint64_t{64} << 20;
  uint64_t memory = uint64_t{256} << 20;  // what all requests hold together
  uint32_t connections = 1024;
  uint32_t streams = 128;  // calls of one connection at one time
  // That are read or run, of all connections; as many again wait unread.
  uint32_t requests = 1024;
  base::Nanoseconds keepalive = 20 * base::kSecond;
  // A peer that does not take its answers for so long is disconnected.
  base::Nanoseconds unread = 30 * base::kSecond;

  // Folder of models that are served by name; empty: none.
  std::string model_repository;
  // Tells the local network of the server, by Avahi where that runs.
  bool advertise = false;
};

}  // namespace rknnd::transport

#endif  // DAEMON_TRANSPORT_GRPC_OPTIONS_H_
