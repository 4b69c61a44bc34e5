// Whether the daemon takes new work, and who waits until the old has ended.
// Written by Service; sessions and reports ask refuses().

#ifndef DAEMON_CORE_SESSIONS_DRAIN_H_
#define DAEMON_CORE_SESSIONS_DRAIN_H_

#include <functional>
#include <utility>
#include <vector>

#include "absl/status/status.h"

namespace rknnd::core {

// Thread: loop.
class Drain {
 public:
  //   serving --Begin--> draining --Undo--> serving
  //        \                | Begin(kStop)
  //         `Begin(kStop)---`----> stopping, which cannot be undone
  enum class State { kServing, kDraining, kStopping };
  enum class Reason { kOperator, kStop };

  [[nodiscard]] bool refuses() const { return state_ != State::kServing; }

  // `done`: with OK when nothing runs any more, or why nobody waits for that.
  void Begin(Reason reason, std::function<void(absl::Status)> done) {
    if (reason == Reason::kStop) {
      state_ = State::kStopping;
    } else if (state_ == State::kServing) {
      state_ = State::kDraining;
    }
    waiting_.push_back(std::move(done));
  }
  absl::Status Undo() {
    switch (state_) {
      case State::kServing:
        return absl::FailedPreconditionError(
            "the daemon is not draining: there is nothing to undo");
      case State::kStopping:
        return absl::FailedPreconditionError(
            "the daemon is being stopped, which cannot be undone");
      case State::kDraining:
        break;
    }
    state_ = State::kServing;
    AnswerAll(absl::AbortedError(
        "the drain was undone (rknnctl drain --undo) before the last job had "
        "ended"));
    return absl::OkStatus();
  }
  // Nothing runs any more.
  void End() { AnswerAll(absl::OkStatus()); }

 private:
  void AnswerAll(const absl::Status& status) {
    for (const auto& done : std::exchange(waiting_, {})) done(status);
  }

  State state_ = State::kServing;
  std::vector<std::function<void(absl::Status)>> waiting_;
};

}  // namespace rknnd::core

#endif  // DAEMON_CORE_SESSIONS_DRAIN_H_
