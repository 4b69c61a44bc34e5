// What a peer sends meanwhile stays in the kernel, which takes as little of it
// as it can be told to.

#include "daemon/transport/grpc/relay/turned_away.h"

#include <sys/socket.h>

#include <algorithm>
#include <utility>

namespace rknnd::transport {
namespace {

// Those that are due within so long go together: a timer for each would be a
// wake-up for each.
constexpr base::Nanoseconds kTogether = 4 * base::kMillisecond;

}  // namespace

void TurnedAway::Add(base::UniqueFd connection) {
  // Their close is a reset, after which the kernel keeps nothing: otherwise
  // each would stay in TIME_WAIT for a minute.
  const linger at_once{1, 0};
  setsockopt(connection.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  const int least = 1;
  setsockopt(connection.get(), SOL_SOCKET, SO_RCVBUF, &least, sizeof least);
  held_.push_back({std::move(connection), loop_->Now() + kHeld});
  if (held_.size() > most_) held_.pop_front();
  if (timer_ == 0) timer_ = loop_->RunAfter(kHeld, [this] { CloseDue(); });
}

void TurnedAway::CloseDue() {
  timer_ = 0;
  const base::Nanoseconds now = loop_->Now();
  while (!held_.empty() && held_.front().until <= now) held_.pop_front();
  if (held_.empty()) return;
  timer_ = loop_->RunAfter(std::max(held_.front().until - now, kTogether),
                           [this] { CloseDue(); });
}

void TurnedAway::Clear() {
  if (timer_ != 0) loop_->CancelTimer(std::exchange(timer_, 0));
  held_.clear();
}

}  // namespace rknnd::transport
