// Stands between the network and gRPC: ends TLS, copies bytes both ways, and
// shows them to a guard on the way (http2_guard.h); a message's own bytes need
// not be shown, and are moved where they are not encrypted (payload_pipe.h).
// gRPC gets one end of a pair of sockets for each connection; who is behind it
// is in the PeerTable.
//
// What is read is written at once. What the other side does not take is kept,
// and nothing more is read meanwhile.

#ifndef DAEMON_TRANSPORT_GRPC_RELAY_RELAY_H_
#define DAEMON_TRANSPORT_GRPC_RELAY_RELAY_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/posix/clock.h"
#include "base/posix/event_loop.h"
#include "base/posix/rate_limit.h"
#include "base/posix/unique_fd.h"
#include "daemon/transport/grpc/peer_table.h"
#include "daemon/transport/grpc/relay/connections.h"
#include "daemon/transport/grpc/relay/http2_guard.h"
#include "daemon/transport/grpc/relay/inbound_memory.h"
#include "daemon/transport/grpc/relay/payload_pipe.h"
#include "daemon/transport/grpc/relay/tls_stream.h"
#include "daemon/transport/grpc/relay/turned_away.h"
#include "daemon/transport/session/event_log.h"

namespace rknnd::transport {

class RelayedConnection;

struct RelayOptions {
  Http2Limits limits;
  uint64_t pool = 0;  // of InboundMemory
  // Calls of all connections that were taken back and have not ended in gRPC:
  // above it nobody opens a call, above a quarter of it nobody who takes more
  // of them back.
  int64_t ending = 1024;
  // Calls that a host may take back: as many as a connection has open at once
  // after a rest, then one in an interval. They cost it next to nothing, and
  // gRPC as much as others. On this machine, where a proxy may stand for
  // everybody, each connection may.
  uint32_t resets_at_once = 128;
  base::Nanoseconds reset_interval = 5 * base::kMillisecond;
  // TLS must stand by then, and the peer must have greeted as HTTP/2 does.
  base::Nanoseconds handshake = 10 * base::kSecond;
};

// Thread: the loop's.
class Relay {
 public:
  // Gives gRPC its end of a connection.
  using Give = std::function<void(base::UniqueFd)>;
  // Gives the kernel back what is free in the heap.
  using Trim = std::function<void()>;

  // All outlive it. `tls`: of connections over TCP; null: they have none.
  // `live_calls`: how many gRPC holds. `trim`: called when most connections
  // have gone, for whom gRPC's threads had heaps of their own.
  Relay(const RelayOptions& options, base::EventLoop* loop,
        const base::Clock* clock, FailureLog* failures, PeerTable* peers,
        TlsFiles* tls, const std::atomic<int64_t>* live_calls, Give give,
        Trim trim);
  ~Relay();
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  void Take(AcceptedConnection connection);
  // Calls `done` when all connections have ended, or those that are left after
  // `within` were cut.
  void Finish(base::Nanoseconds within, std::function<void()> done);

 private:
  friend class RelayedConnection;

  // At most `most` are read at a time, fewer where much is kept already.
  [[nodiscard]] std::span<std::byte> Scratch(
      size_t most = std::numeric_limits<size_t>::max());
  [[nodiscard]] bool KeepsMuch() const;
  [[nodiscard]] bool MayOpen(uint32_t resets, base::RateLimit* host) const;
  [[nodiscard]] std::shared_ptr<base::RateLimit> ResetsOf(
      const std::string& host);
  void Wait(RelayedConnection* connection);
  void Retry();
  void Forget(RelayedConnection* connection);

  const RelayOptions options_;
  base::EventLoop* const loop_;
  const base::Clock* const clock_;
  FailureLog* const failures_;
  PeerTable* const peers_;
  TlsFiles* const tls_;
  const std::atomic<int64_t>* const live_calls_;
  const Give give_;
  const Trim trim_;

  PayloadPipe pipe_;
  const std::string prefix_;  // of the sockets' names
  uint64_t next_ = 1;
  std::vector<std::byte> scratch_;
  InboundMemory memory_;
  base::RateLimits resets_;  // by host
  int64_t streams_ = 0;      // open calls of all connections
  uint64_t kept_ = 0;        // bytes that the other side has not taken
  TurnedAway cut_;
  std::unordered_map<RelayedConnection*, std::shared_ptr<RelayedConnection>>
      connections_;
  size_t most_ = 0;  // connections at one time, since it was trimmed
  base::EventLoop::TimerId trimming_ = 0;
  std::unordered_set<RelayedConnection*> waiting_;
  base::EventLoop::TimerId retry_ = 0;
  // Since when somebody has waited for the pool.
  base::Nanoseconds full_since_ = 0;
  base::EventLoop::TimerId finish_ = 0;
  std::function<void()> finished_;
};

}  // namespace rknnd::transport

#endif  // DAEMON_TRANSPORT_GRPC_RELAY_RELAY_H_
