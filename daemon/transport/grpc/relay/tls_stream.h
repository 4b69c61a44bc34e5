// The server's end of TLS: certificate and key as their files have them, whom
// it asks for a certificate, and the connections that are made with them.

#ifndef DAEMON_TRANSPORT_GRPC_RELAY_TLS_STREAM_H_
#define DAEMON_TRANSPORT_GRPC_RELAY_TLS_STREAM_H_

#include <sys/stat.h>

#include <array>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/posix/event_loop.h"
#include "daemon/transport/grpc/options.h"
#include "daemon/transport/grpc/relay/peer_stream.h"
#include "daemon/transport/session/event_log.h"

struct ssl_ctx_st;

namespace rknnd::transport {

// Reads the files again when they have changed: a connection that is made
// after that has the new certificate. What is wrong then changes nothing.
// Thread: the loop's.
class TlsFiles {
 public:
  // All outlive it.
  static absl::StatusOr<std::unique_ptr<TlsFiles>> Read(
      const GrpcOptions& options, base::EventLoop* loop, FailureLog* failures);
  ~TlsFiles();

  // Null where memory is lacking. `fd` outlives it.
  std::unique_ptr<PeerStream> Accept(int fd);

 private:
  TlsFiles(const GrpcOptions& options, base::EventLoop* loop,
           FailureLog* failures);

  absl::Status ReadAll();
  void LookAgain();

  const GrpcOptions options_;
  base::EventLoop* const loop_;
  FailureLog* const failures_;
  std::shared_ptr<ssl_ctx_st> context_;
  std::array<struct stat, 3> read_{};  // of the files that context_ has
  base::EventLoop::TimerId look_ = 0;
};

}  // namespace rknnd::transport

#endif  // DAEMON_TRANSPORT_GRPC_RELAY_TLS_STREAM_H_
