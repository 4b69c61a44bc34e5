// One connection of the relay: a peer's socket, gRPC's, the guard between them,
// and what either has not taken yet.

#ifndef DAEMON_TRANSPORT_GRPC_RELAY_RELAYED_CONNECTION_H_
#define DAEMON_TRANSPORT_GRPC_RELAY_RELAYED_CONNECTION_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/posix/event_loop.h"
#include "base/posix/rate_limit.h"
#include "base/posix/unique_fd.h"
#include "daemon/transport/grpc/relay/relay.h"

namespace rknnd::transport {

// Thread: the loop's. A callback of the loop keeps it alive until End().
class RelayedConnection final
    : private Http2Room,
      public std::enable_shared_from_this<RelayedConnection> {
 public:
  // `name`: of its socket to gRPC. `relay` outlives it.
  RelayedConnection(Relay* relay, AcceptedConnection connection,
                    std::string name);
  ~RelayedConnection() override = default;

  void Begin();
  // Tells the peer why, and the log.
  void Cut(const std::string& why);
  // Closes both sockets; it may be gone after that.
  void End();
  // What the guard held back is shown to it again.
  void Retry();

  // Whether it waits for the pool.
  [[nodiscard]] bool lacks_room() const { return lacks_room_; }
  [[nodiscard]] const InboundMemory::Account& account() const {
    return account_;
  }

 private:
  // Read, and not taken by the other side.
  struct Kept {
    std::vector<std::byte> bytes;
    size_t at = 0;

    [[nodiscard]] std::span<const std::byte> rest() const {
      return std::span(bytes).subspan(at);
    }
    [[nodiscard]] bool empty() const { return at == bytes.size(); }
  };
  // Of a socket.
  struct Watched {
    base::EventLoop::WatchId watch = 0;
    uint32_t events = 0;
  };

  // Http2Room
  bool Take(uint64_t bytes) override;
  void GiveBack(uint64_t bytes) override { account_.GiveBack(bytes); }
  bool MayOpen(uint32_t resets) override;

  void Handshake();
  void Greet();
  // Until the peer has sent more, or takes more.
  void AwaitPeer();
  void Connect();
  void OnPeer(uint32_t events);
  void OnGrpc(uint32_t events);
  // From the peer to gRPC, and back. False: it has ended.
  bool PumpIn();
  bool PumpOut();
  [[nodiscard]] bool MayMove() const;
  // As a PeerStream reads, but what it reads has gone on to gRPC already, or is
  // kept. Nothing: what comes next is to be shown to the guard.
  std::optional<ssize_t> MoveUnread();
  // How much of `bytes` gRPC took; nothing: the connection has ended.
  std::optional<size_t> PassOn(std::span<const std::byte> bytes);
  void Keep(Kept& kept, std::span<const std::byte> bytes);
  void Drop(Kept& kept, size_t size);
  void CountStreams();
  void WatchBoth();
  void Watch(Watched& watched, int fd, uint32_t events,
             void (RelayedConnection::*ready)(uint32_t));

  Relay* const relay_;
  AcceptedConnection connection_;
  const std::string name_;
  base::UniqueFd grpc_;
  std::unique_ptr<PeerStream> stream_;
  InboundMemory::Account account_;
  const std::shared_ptr<base::RateLimit> resets_;  // its host's
  Http2Guard guard_;

  //   kHandshake --TLS stands--> kGreeting --it has greeted--> kConnected
  //
  // Each of them may End. gRPC makes a lot for a connection, and keeps some of
  // those that end before they have greeted for as long as a greeting may take:
  // it is given only those that have.
  enum class Stage : uint8_t { kHandshake, kGreeting, kConnected };
  Stage stage_ = Stage::kHandshake;

  Watched watch_peer_, watch_grpc_;
  base::EventLoop::TimerId timer_ = 0;  // until kConnected, or of the end
  Kept in_, out_;      // in_: until kConnected, what has come of the greeting
  size_t passed_ = 0;  // by the guard, of what is in in_
  bool mark_due_ = false;  // behind what was passed
  int64_t streams_ = 0;    // counted in the relay's
  bool ended_ = false;
  bool held_ = false;  // by the guard
  // The peer's socket is to be readable when it has so many bytes, or cannot
  // take as many, and has been told. With that it takes as many at one time.
  size_t asks_for_ = 1, told_ = 1;
  bool full_ = false;  // gRPC takes none of those that are to be moved
  bool lacks_room_ = false;
  bool calls_end_ = false;  // it waits as it has taken calls back
  bool peer_done_ = false;  // it has sent all
  bool grpc_done_ = false;  // its end is closed; what it sent is not all read
};

}  // namespace rknnd::transport

#endif  // DAEMON_TRANSPORT_GRPC_RELAY_RELAYED_CONNECTION_H_
