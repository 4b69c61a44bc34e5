// Accepts clients on session.sock and operators on admin.sock, and holds their
// connections. A client that only connects costs a slot for a few seconds; how
// many sessions there are has a bound.

#ifndef DAEMON_TRANSPORT_SESSION_SERVER_H_
#define DAEMON_TRANSPORT_SESSION_SERVER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/posix/event_loop.h"
#include "base/posix/rate_limit.h"
#include "base/posix/unique_fd.h"
#include "daemon/core/terms/types.h"
#include "daemon/transport/session/connection.h"
#include "daemon/transport/session/pace.h"
#include "daemon/transport/session/ring/notices.h"
#include "daemon/transport/session/share_sockets.h"
#include "daemon/transport/session/user_threads.h"

namespace rknnd::transport {

struct ServerLimits {
  // Of all transports (core::ServiceOptions); each takes four fds of this
  // process and 64 KiB.
  size_t sessions = 1024;
  // Connections that have not said Hello yet: a reboot's worth of clients that
  // come at once, and no more to be had by connecting only. One more takes the
  // place of the oldest of whoever has most of them: a program says Hello at
  // once, so that those who only connect keep nobody out.
  size_t pending_connections = 64;
  // Of them, those that came in by one share socket. Likewise.
  size_t pending_of_socket = 16;
};

// How many connections are accepted: kAcceptedAtOnce after a rest, and then one
// in kAcceptInterval. Others wait in the kernel, so that a flood of them leaves
// the CPU to programs that run their models. Operators do not wait.
inline constexpr uint32_t kAcceptedAtOnce = 64;
inline constexpr base::Nanoseconds kAcceptInterval = base::kMillisecond;

// A listener at `path`; its folder is created when missing.
absl::StatusOr<base::UniqueFd> ListenAt(const std::string& path,
                                        unsigned int mode);

// Thread: loop.
class SessionServer final : public ConnectionOwner, public ShareSocketOwner {
 public:
  SessionServer(const Environment& environment, const ServerLimits& limits);
  ~SessionServer() override;

  // Serves the connections of a listening socket. `admin`: its peers may
  // change things for others.
  absl::Status Serve(base::UniqueFd listener, bool admin);
  // Serves a socket that is connected already.
  absl::Status Adopt(base::UniqueFd socket, bool admin);

  // No new connections from now on.
  void StopListening();
  void CloseAll(const absl::Status& reason);
  // Ends the session whose ring broke the protocol.
  void CloseSession(core::SessionId session, const absl::Status& reason);
  // Called after a connection was closed and none is left.
  void OnEmpty(std::function<void()> empty) { empty_ = std::move(empty); }

  // From now on; whoever has come in stays.
  void SetLimits(const ServerLimits& limits) { limits_ = limits; }

  [[nodiscard]] size_t connections() const { return connections_.size(); }

  void OnOpened(Connection* connection) override;
  void OnClosed(Connection* connection) override;
  [[nodiscard]] bool IsAlone(const Connection* connection) const override {
    return sessions_ == (connection->session() != 0 ? 1 : 0);
  }

  absl::StatusOr<uint64_t> OpenShareSocket(
      base::UniqueFd listener,
      std::shared_ptr<const core::Allocation> allocation) override;
  void StopShareSocket(uint64_t share_socket) override;
  void CloseShareSocket(const std::string& name) override;

 private:
  struct Listener {
    base::UniqueFd fd;
    bool admin = false;
    std::shared_ptr<const core::Allocation>
        allocation;                       // of a share socket, or null
    base::EventLoop::WatchId watch = 0;   // 0: paused
    base::EventLoop::TimerId resume = 0;  // 0: not paused
  };
  using ListenerId = uint64_t;  // never used again

  absl::StatusOr<ListenerId> Add(Listener listener);
  void Remove(ListenerId listener);
  [[nodiscard]] std::vector<ListenerId> ShareSocketsNamed(
      const std::string& name) const;
  void AcceptFrom(ListenerId listener);
  void Pause(ListenerId listener, base::Nanoseconds delay);
  absl::Status Watch(ListenerId listener);
  absl::Status Admit(base::UniqueFd socket, bool admin,
                     std::shared_ptr<const core::Allocation> allocation);
  // For one more that has not said Hello, by a share socket or not: turns
  // another one away where there are too many.
  void MakeRoom(const core::Allocation* allocation);

  const std::shared_ptr<UserThreads> user_threads_ =
      std::make_shared<UserThreads>();
  NoticesByUser notices_;
  Paces paces_;
  const Environment environment_;
  ServerLimits limits_;
  std::map<ListenerId, Listener> listeners_;
  ListenerId last_listener_ = 0;
  bool stopped_ = false;  // there will be no more of them
  // Of connections that are no operator's.
  base::RateLimit accepts_{kAcceptedAtOnce, kAcceptInterval};
  struct Held {
    std::shared_ptr<Connection> connection;
    uint64_t order;  // of coming in
  };
  std::unordered_map<Connection*, Held> connections_;
  uint64_t last_order_ = 0;
  size_t sessions_ = 0;
  std::function<void()> empty_;
};

}  // namespace rknnd::transport

#endif  // DAEMON_TRANSPORT_SESSION_SERVER_H_
