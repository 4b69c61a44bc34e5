// The connections for which there is no place, and those that were cut off,
// until their peers hear of it. A peer that replaces each at once comes twice a
// second with each then, and not as often as the daemon can refuse it. Used by
// ConnectionAcceptor and Relay.

#ifndef DAEMON_TRANSPORT_GRPC_RELAY_TURNED_AWAY_H_
#define DAEMON_TRANSPORT_GRPC_RELAY_TURNED_AWAY_H_

#include <cstddef>
#include <deque>

#include "base/posix/clock.h"
#include "base/posix/event_loop.h"
#include "base/posix/unique_fd.h"

namespace rknnd::transport {

// Thread: the loop's.
class TurnedAway {
 public:
  static constexpr base::Nanoseconds kHeld = 500 * base::kMillisecond;

  // Holds so many; where there are more, the oldest hear of it at once.
  TurnedAway(size_t most, base::EventLoop* loop) : most_(most), loop_(loop) {}
  ~TurnedAway() { Clear(); }
  TurnedAway(const TurnedAway&) = delete;
  TurnedAway& operator=(const TurnedAway&) = delete;

  void Add(base::UniqueFd connection);
  void Clear();
  [[nodiscard]] size_t size() const { return held_.size(); }

 private:
  struct Held {
    base::UniqueFd connection;
    base::Nanoseconds until = 0;
  };

  void CloseDue();

  const size_t most_;
  base::EventLoop* const loop_;
  std::deque<Held> held_;  // the oldest first
  base::EventLoop::TimerId timer_ = 0;
};

}  // namespace rknnd::transport

#endif  // DAEMON_TRANSPORT_GRPC_RELAY_TURNED_AWAY_H_
