// Begun and ended on gRPC's threads and the loop; expired on the server's
// thread. The peers it watches may do anything, or nothing.

#include "daemon/transport/grpc/delivery_watch.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace rknnd::transport {

DeliveryWatch::Guard::Guard(Guard&& other) noexcept
    : watch_(std::exchange(other.watch_, nullptr)), number_(other.number_) {}

DeliveryWatch::Guard& DeliveryWatch::Guard::operator=(Guard&& other) noexcept {
  if (this == &other) return *this;
  Release();
  watch_ = std::exchange(other.watch_, nullptr);
  number_ = other.number_;
  return *this;
}

void DeliveryWatch::Guard::Release() {
  if (watch_ != nullptr) std::exchange(watch_, nullptr)->Forget(number_);
}

DeliveryWatch::DeliveryWatch(base::Nanoseconds limit, base::EventLoop* loop,
                             const base::Clock* clock, FailureLog* failures)
    : limit_(limit), loop_(loop), clock_(clock), failures_(failures) {}

DeliveryWatch::Guard DeliveryWatch::Begin(const std::string& peer,
                                          std::function<void()> cancel,
                                          const char* fault) {
  Guard guard;
  guard.watch_ = this;
  bool arm = false;
  {
    const std::lock_guard lock(mutex_);
    guard.number_ = next_++;
    waiting_.emplace_hint(
        waiting_.end(), guard.number_,
        Waiting{clock_->Now() + limit_, peer, std::move(cancel), fault});
    arm = !std::exchange(armed_, true);
  }
  // Once in a while, not for each answer.
  if (arm) {
    loop_->Post([this] { loop_->RunAfter(limit_, [this] { CancelLate(); }); });
  }
  return guard;
}

size_t DeliveryWatch::waiting() const {
  const std::lock_guard lock(mutex_);
  return waiting_.size();
}

void DeliveryWatch::Forget(uint64_t number) {
  const std::lock_guard lock(mutex_);
  waiting_.erase(number);
}

void DeliveryWatch::CancelLate() {
  const std::lock_guard lock(mutex_);
  const base::Nanoseconds now = clock_->Now();
  while (!waiting_.empty() && waiting_.begin()->second.due <= now) {
    // Out of the list first: its guard may end while it is cancelled.
    const Waiting late = std::move(waiting_.begin()->second);
    waiting_.erase(waiting_.begin());
    failures_->Note(absl::StrCat("gRPC peer '", late.peer, "' ", late.fault,
                                 ": call cancelled after ",
                                 limit_ / base::kSecond, " s (grpc.unread)"));
    late.cancel();
  }
  armed_ = !waiting_.empty();
  if (!armed_) return;
  const base::Nanoseconds delay = waiting_.begin()->second.due - now;
  loop_->RunAfter(delay, [this] { CancelLate(); });
}

}  // namespace rknnd::transport
