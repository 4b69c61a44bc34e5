// One client's connection, from accept to end of file: says hello, hands
// requests on, sends answers. Trusts no byte of the peer and waits for
// nothing: what a client does not read is kept up to a bound, then it is
// disconnected.

#ifndef DAEMON_TRANSPORT_SESSION_CONNECTION_H_
#define DAEMON_TRANSPORT_SESSION_CONNECTION_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "base/posix/event_loop.h"
#include "base/posix/unique_fd.h"
#include "daemon/core/service.h"
#include "daemon/core/sessions/session.h"
#include "daemon/core/terms/types.h"
#include "daemon/transport/session/event_log.h"
#include "daemon/transport/session/pace.h"
#include "daemon/transport/session/requests.h"
#include "daemon/transport/session/ring/notices.h"
#include "daemon/transport/session/ring/ring_endpoint.h"
#include "daemon/transport/session/ring/workers.h"
#include "daemon/transport/session/share_sockets.h"
#include "daemon/transport/session/user_threads.h"
#include "proto/wire/codec.h"
#include "proto/wire/frame.h"

namespace rknnd::transport {

// What connections work with. All of it outlives them.
struct Environment {
  base::EventLoop* loop = nullptr;
  core::Service* service = nullptr;
  Workers* workers = nullptr;
  FailureLog* failures = nullptr;
  Board* board = nullptr;  // null: nobody answers for the machine
  ShareSocketOwner* share_sockets = nullptr;  // the server itself
  UserThreads* user_threads = nullptr;        // the server's, or null
  NoticesByUser* notices = nullptr;           // of the same
  Paces* paces = nullptr;                     // of the same
};

class Connection;

// Thread: loop.
class ConnectionOwner {
 public:
  virtual ~ConnectionOwner() = default;
  virtual void OnOpened(Connection* connection) = 0;
  // The last call for this connection; it may be released later, not at once.
  virtual void OnClosed(Connection* connection) = 0;
  // Whether there is no other session.
  [[nodiscard]] virtual bool IsAlone(const Connection* connection) const = 0;
};

// Thread: loop.
class Connection final : public std::enable_shared_from_this<Connection> {
 public:
  //            Hello is good
  //   kHello ------------------> kOpen
  //     |                          |
  //     | Hello is bad or late     | end of file, pidfd, garbage, a ring
  //     | (answered if it can be)  | violation, unread answers, Close()
  //     v                          v
  //   kClosed <----------------- kClosed
  enum class State { kHello, kOpen, kClosed };

  Connection(const Environment& environment, ConnectionOwner* owner,
             base::UniqueFd socket, core::SessionPeer peer);
  ~Connection();

  // Starts to listen to the peer. `process` is its pidfd, or invalid.
  absl::Status Start(base::UniqueFd process);
  // Ends the session and all it owns; `reason` is told to the client's log if
  // it still listens. Does nothing when closed already.
  void Close(const absl::Status& reason);

  [[nodiscard]] State state() const { return state_; }
  [[nodiscard]] core::SessionId session() const { return session_id_; }
  [[nodiscard]] const core::SessionPeer& peer() const { return peer_; }

 private:
  class ClientLog;

  void OnSocket(uint32_t events);
  void Receive();
  // Whether nothing is received for a while: a pause has begun, or does as its
  // user is late.
  bool Pauses();
  // Whether a pause begins because this user asks too often, or, before Hello,
  // because its connections end too often. A request that may come is counted.
  bool IsTooFast();
  void PauseFor(base::Nanoseconds pause);
  void OnFrame(wire::Frame frame);
  void End(const absl::Status& reason);
  // Calls `handle`; what it closes is closed where that may take its time.
  template <class Handle>
  void Guarded(const Handle& handle);
  void OnHello(const wire::Frame& frame);
  absl::Status Open(const wire::Hello& hello, wire::Frame& welcome);
  // Answers the first request with its failure and closes.
  void RefuseHello(const wire::Frame& request, const absl::Status& status);
  void Answer(wire::Verb verb, uint32_t request, Reply reply);
  void Send(wire::Frame frame);
  // As EventCallback.
  bool TakeEvent(wire::Frame event);
  void Flush();
  // Whether sending to this client's user has lasted (notices.h).
  [[nodiscard]] bool IsToldLate() const;
  // The first frame that is not sent is on its way by the user's own thread.
  void SendLate();
  // Takes note of what became of it; false: no more can be sent now.
  bool OnSent(const base::Expected<void>& sent, size_t bytes);
  // Closes in the loop's next round: core may be in the middle of answering.
  void CloseSoon(const absl::Status& reason);
  void UpdateEvents();
  // Whether a reply of this size in a memfd may be sent now.
  bool MayHoldUnread(size_t bytes);

  const Environment environment_;
  ConnectionOwner* const owner_;
  // Shared with a thread that sends.
  std::shared_ptr<base::UniqueFd> socket_;
  base::UniqueFd process_;
  core::SessionPeer peer_;
  // For whom descriptors of this connection are closed. Empty: at once, as for
  // operators and our own process, who would hold up themselves.
  std::string closes_for_;
  std::shared_ptr<Notices> notices_;  // null where that is empty
  std::optional<Pace> pace_;          // likewise

  State state_ = State::kHello;
  base::EventLoop::WatchId socket_watch_ = 0;
  base::EventLoop::WatchId process_watch_ = 0;
  base::EventLoop::TimerId hello_timer_ = 0;
  base::EventLoop::TimerId pause_timer_ = 0;  // nothing is received until then
  uint32_t watched_events_ = 0;

  core::SessionId session_id_ = 0;
  std::shared_ptr<RingEndpoint> ring_;
  std::shared_ptr<core::Session> session_;
  std::shared_ptr<ClientLog> log_;
  std::optional<Requests> requests_;

  std::deque<wire::Frame> unsent_;
  size_t unsent_bytes_ = 0;
  bool sends_late_ = false;  // a frame is with the user's thread
  uint32_t failed_flushes_ = 0;
  // Bytes in memfds that lie in the socket and that nobody is charged for.
  size_t unread_memfd_bytes_ = 0;
  bool closing_ = false;     // nothing is sent any more
  uint32_t unanswered_ = 0;  // requests whose answer comes later
};

}  // namespace rknnd::transport

#endif  // DAEMON_TRANSPORT_SESSION_CONNECTION_H_
