// For whoever is called back from elsewhere, perhaps after its end: the calls
// that it asked for reach it while it is there, and do nothing afterwards.

#ifndef DAEMON_CORE_TERMS_PRESENCE_H_
#define DAEMON_CORE_TERMS_PRESENCE_H_

#include <functional>
#include <memory>
#include <type_traits>
#include <utility>

#include "base/posix/event_loop.h"

namespace rknnd::core {

// A member of its owner, which calls End() or has it as the last member: it
// ends before anything that a call would use. Thread: loop, but where noted.
class Presence {
 public:
  Presence() = default;
  Presence(const Presence&) = delete;
  Presence& operator=(const Presence&) = delete;

  void End() { token_.reset(); }
  // Expires at the end. Thread: any may ask it whether it has.
  [[nodiscard]] std::weak_ptr<const void> token() const { return token_; }

  // A function that has `call` made on the loop, with copies of its arguments.
  // It may be called by any thread and at any time, also after the end.
  template <class... Args>
  [[nodiscard]] std::function<void(Args...)> OnLoop(
      base::Executor* loop,
      std::type_identity_t<std::function<void(const Args&...)>> call) const {
    return [loop, weak = token(), call = std::move(call)](Args... args) {
      loop->Post([weak, call, args...] {
        if (!weak.expired()) call(args...);
      });
    };
  }

 private:
  std::shared_ptr<const void> token_ = std::make_shared<char>();
};

}  // namespace rknnd::core

#endif  // DAEMON_CORE_TERMS_PRESENCE_H_
