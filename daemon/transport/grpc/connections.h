// Accepts the gRPC server's connections, and no more than it is told. gRPC
// itself has no such limit and does not say when a connection ends, so what it
// was given is looked at: a socket of another number, or none, has ended.

#ifndef DAEMON_TRANSPORT_GRPC_CONNECTIONS_H_
#define DAEMON_TRANSPORT_GRPC_CONNECTIONS_H_

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/posix/clock.h"
#include "base/posix/event_loop.h"
#include "base/posix/unique_fd.h"
#include "daemon/transport/grpc/addresses.h"
#include "daemon/transport/session/event_log.h"

namespace rknnd::transport {

// The connections there are, by host. Thread: the server's.
class ConnectionTable {
 public:
  // So many at one time; of one host no more than half, unless that is this
  // machine, where a proxy may stand for everybody.
  ConnectionTable(uint32_t most, const base::Clock* clock);

  // RESOURCE_EXHAUSTED, and it is not noted. `fd`, a socket, will be closed by
  // its owner whenever that likes.
  absl::Status Add(int fd, const sockaddr_storage& peer);
  // Those not seen to have ended yet.
  [[nodiscard]] size_t size() const { return connections_.size(); }

 private:
  struct Entry {
    int fd = -1;
    ino_t socket = 0;
    std::string host;
  };

  void ForgetEnded();

  const uint32_t most_;
  const base::Clock* const clock_;
  std::vector<Entry> connections_;
  std::map<std::string, uint32_t> of_host_;
  base::Nanoseconds looked_ = 0;
};

// Thread: the server's, whose loop it uses.
class ConnectionAcceptor {
 public:
  // Gives a new connection to gRPC. `local`: it came by a Unix socket.
  using Take = std::function<void(base::UniqueFd connection, bool local)>;

  // All outlive it.
  ConnectionAcceptor(uint32_t most, base::EventLoop* loop,
                     const base::Clock* clock, FailureLog* failures, Take take);
  ~ConnectionAcceptor() { Stop(); }

  absl::Status Serve(GrpcListener listener);
  // No connections from now on; names of Unix sockets are gone.
  void Stop();

 private:
  struct Listener {
    GrpcListener address;
    base::EventLoop::WatchId watch = 0;  // 0: paused
  };

  absl::Status Watch(size_t listener);
  void AcceptFrom(size_t listener);
  void Pause();

  base::EventLoop* const loop_;
  FailureLog* const failures_;
  const Take take_;
  // By their own, so that operators get in when the network's are all taken.
  ConnectionTable remote_, local_;
  std::vector<Listener> listeners_;
  base::EventLoop::TimerId resume_ = 0;
};

}  // namespace rknnd::transport

#endif  // DAEMON_TRANSPORT_GRPC_CONNECTIONS_H_
