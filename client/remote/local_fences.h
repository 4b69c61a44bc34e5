// Fences of a session whose daemon is on another machine: they stay here. A run
// is sent when its fence was signalled, and what it is to tell is told when its
// end has arrived. Used by a bridge on its thread.

#ifndef CLIENT_REMOTE_LOCAL_FENCES_H_
#define CLIENT_REMOTE_LOCAL_FENCES_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "base/posix/event_loop.h"
#include "base/posix/unique_fd.h"
#include "base/values/expected.h"

namespace rknnd::client {

// A registered descriptor, as long as somebody refers to it.
struct LocalFence {
  uint32_t number = 0;
  bool out = false;
  base::UniqueFd fd;
};

// Thread: bridge.
class LocalFences {
 public:
  enum class State { kPending, kSignalled, kClosed };

  // Calls `changed` when a fence that is watched is not pending any more.
  LocalFences(base::EventLoop* loop, std::function<void()> changed)
      : loop_(loop), changed_(std::move(changed)) {}
  ~LocalFences();
  LocalFences(const LocalFences&) = delete;
  LocalFences& operator=(const LocalFences&) = delete;

  base::Expected<void> Register(uint32_t number, bool out, base::UniqueFd fd);
  base::Expected<void> Release(uint32_t number);
  // The fence of that number and kind, or why there is none. Number 0: null.
  base::Expected<std::shared_ptr<const LocalFence>> Find(uint32_t number,
                                                         bool out) const;

  [[nodiscard]] static State Look(const LocalFence& fence);
  // One byte, to whoever waits for it.
  static void Signal(const LocalFence& fence);

  // Watches this one from now on, until it has changed or Forget.
  base::Expected<void> Watch(const std::shared_ptr<const LocalFence>& fence);
  void Forget(const LocalFence& fence);

 private:
  struct Watched {
    std::shared_ptr<const LocalFence> fence;
    base::EventLoop::WatchId watch = 0;
    uint32_t runs = 0;  // that wait for it
  };

  base::EventLoop* const loop_;
  const std::function<void()> changed_;
  std::map<uint32_t, std::shared_ptr<const LocalFence>> fences_;
  std::map<const LocalFence*, Watched> watched_;
};

}  // namespace rknnd::client

#endif  // CLIENT_REMOTE_LOCAL_FENCES_H_
