// Accepts the gRPC server's connections, and no more than it is told: gRPC
// itself has no such limit.

#ifndef DAEMON_TRANSPORT_GRPC_RELAY_CONNECTIONS_H_
#define DAEMON_TRANSPORT_GRPC_RELAY_CONNECTIONS_H_

#include <sys/socket.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/posix/event_loop.h"
#include "base/posix/unique_fd.h"
#include "daemon/transport/grpc/relay/addresses.h"
#include "daemon/transport/grpc/relay/turned_away.h"
#include "daemon/transport/session/event_log.h"

namespace rknnd::transport {

// The connections there are, by host. Thread: the server's.
class ConnectionTable {
 public:
  // That a connection has until it goes.
  class Place {
   public:
    Place(ConnectionTable* table, std::string host)
        : table_(table), host_(std::move(host)) {}
    ~Place() { table_->Leave(host_); }
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;

   private:
    ConnectionTable* const table_;
    const std::string host_;
  };

  // So many at one time; of one host no more than half, unless that is this
  // machine, where a proxy may stand for everybody.
  explicit ConnectionTable(uint32_t most) : most_(most) {}

  // RESOURCE_EXHAUSTED, and it is not noted. The table outlives its places.
  absl::StatusOr<std::unique_ptr<Place>> Add(const sockaddr_storage& peer);
  [[nodiscard]] size_t size() const { return size_; }

 private:
  void Leave(const std::string& host);

  const uint32_t most_;
  size_t size_ = 0;
  std::map<std::string, uint32_t> of_host_;
};

struct AcceptedConnection {
  base::UniqueFd fd;
  std::string address;  // "ipv4:192.0.2.7:40112", "unix:"
  std::string host;     // whose address that is; empty: this machine
  bool local = false;   // it came by a Unix socket
  std::unique_ptr<ConnectionTable::Place> place;
};

// Thread: the server's, whose loop it uses.
class ConnectionAcceptor {
 public:
  using Take = std::function<void(AcceptedConnection)>;

  // All outlive it, and it outlives the connections.
  ConnectionAcceptor(uint32_t most, base::EventLoop* loop, FailureLog* failures,
                     Take take);
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
  TurnedAway turned_away_;
  std::vector<Listener> listeners_;
  base::EventLoop::TimerId resume_ = 0;
};

}  // namespace rknnd::transport

#endif  // DAEMON_TRANSPORT_GRPC_RELAY_CONNECTIONS_H_
