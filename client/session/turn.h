// The turn at a session's socket, given back at the end of a scope.

#ifndef CLIENT_SESSION_TURN_H_
#define CLIENT_SESSION_TURN_H_

#include "client/session/session_target.h"

namespace rknnd::client {

// Thread: the one that made it.
class SessionTarget::Turn {
 public:
  Turn(SessionTarget& target, base::Nanoseconds deadline)
      : target_(target), taken_(target.TakeTurn(deadline)) {}
  ~Turn() {
    if (taken_) target_.GiveTurn();
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  [[nodiscard]] bool taken() const { return taken_; }

 private:
  SessionTarget& target_;
  const bool taken_;
};

}  // namespace rknnd::client

#endif  // CLIENT_SESSION_TURN_H_
