// The verbs about the board and the daemon itself: kDoctor, kClocks,
// kPinClocks, kFollowLogs, kSetLogLevel, kReset, kQuarantine. Part of a
// session's Requests; what a connection holds of the board (a pin, a place at
// the log) goes with it.

#ifndef DAEMON_TRANSPORT_SESSION_BOARD_REQUESTS_H_
#define DAEMON_TRANSPORT_SESSION_BOARD_REQUESTS_H_

#include <memory>

#include "daemon/core/service.h"
#include "daemon/transport/session/board.h"
#include "daemon/transport/session/reply.h"
#include "proto/wire/frame.h"

namespace rknnd::transport {

// Thread: loop.
class BoardRequests {
 public:
  // All outlive it. `board`: null where nobody answers for it. `events`: where
  // followed lines go; null: they cannot be followed here.
  BoardRequests(core::Service* service, Board* board, EventCallback events);
  ~BoardRequests();

  // `request` is one of the verbs above, from a peer that may use it. Answers
  // as Requests::Handle.
  void Handle(const wire::Frame& request, const ReplyCallback& reply);

 private:
  struct Held;

  void Doctor(const ReplyCallback& reply);
  void Clocks(const ReplyCallback& reply);
  void PinClocks(const wire::Frame& request, const ReplyCallback& reply);
  void FollowLogs(const wire::Frame& request, const ReplyCallback& reply);
  void SetLogLevel(const wire::Frame& request, const ReplyCallback& reply);
  void Reset(const wire::Frame& request, const ReplyCallback& reply);
  void Quarantine(const wire::Frame& request, const ReplyCallback& reply);

  core::Service* const service_;
  Board* const board_;
  const EventCallback events_;
  // Shared with answers that come when this has gone.
  const std::shared_ptr<Held> held_;
};

}  // namespace rknnd::transport

#endif  // DAEMON_TRANSPORT_SESSION_BOARD_REQUESTS_H_
