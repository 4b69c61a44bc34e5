// One call of Remote.Session: moves messages between gRPC and a Tunnel, one at
// a time each way, and sees to it that the call ends, whatever its peer does or
// leaves.

#ifndef DAEMON_TRANSPORT_GRPC_SESSION_STREAM_H_
#define DAEMON_TRANSPORT_GRPC_SESSION_STREAM_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "daemon/core/terms/types.h"
#include "daemon/transport/grpc/session/tunnel.h"

namespace grpc {
class ByteBuffer;
class CallbackServerContext;
template <class Request, class Response>
class ServerBidiReactor;
}  // namespace grpc

namespace rknnd::transport {

using RemoteReactor =
    grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>;

class RemoteStream {
 public:
  virtual ~RemoteStream() = default;
  // Whether its client has not said Hello yet. Thread: any.
  [[nodiscard]] virtual bool is_pending() const = 0;
  // Ends what lasts too long. Thread: loop.
  virtual void Tick() = 0;
  // Ends its session now, and the call when its client has what is there for
  // it, or when the server cuts it. Thread: loop.
  virtual void Stop(const absl::Status& reason) = 0;
};

// Who keeps the streams. Thread: any.
class RemoteStreamOwner {
 public:
  virtual ~RemoteStreamOwner() = default;
  // Before anything is read. Not OK: it is not to begin.
  virtual absl::Status OnStarted(std::shared_ptr<RemoteStream> stream) = 0;
  // The last call for this stream.
  virtual void OnDone(RemoteStream* stream) = 0;
};

// What gRPC is given for a call. `context` and `owner` outlive the call.
RemoteReactor* StartRemoteStream(
    std::shared_ptr<const TunnelEnvironment> environment,
    core::SessionPeer peer, const std::string& account,
    grpc::CallbackServerContext* context, RemoteStreamOwner* owner);
// The same for a call that is refused at once.
RemoteReactor* RefuseRemoteStream(const absl::Status& why);

}  // namespace rknnd::transport

#endif  // DAEMON_TRANSPORT_GRPC_SESSION_STREAM_H_
