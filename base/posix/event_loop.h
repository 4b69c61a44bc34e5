// The control plane's thread: one epoll loop, timers, and a mailbox.

#ifndef BASE_POSIX_EVENT_LOOP_H_
#define BASE_POSIX_EVENT_LOOP_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/posix/clock.h"
#include "base/posix/mutex.h"
#include "base/posix/unique_fd.h"
#include "base/values/expected.h"

namespace rknnd::base {

// Runs `task` later, in order, never inline. Thread: any.
class Executor {
 public:
  virtual ~Executor() = default;
  virtual void Post(std::function<void()> task) = 0;
};

// Runs until Quit(). Sleeps without a timeout when no timer is set: an idle
// loop never wakes.
// Thread: Post and Quit any; all else loop.
class EventLoop final : public Executor {
 public:
  using TimerId = uint64_t;
  using WatchId = uint64_t;

  static Expected<std::unique_ptr<EventLoop>> Create(const Clock* clock);
  ~EventLoop() override;

  void Run();
  void Quit();
  void Post(std::function<void()> task) override;

  // Calls `ready(epoll events)` while `fd` has any of `events`
  // (level-triggered). `fd` stays the caller's and must outlive the watch.
  // A watch may be removed from within any callback.
  Expected<WatchId> Watch(int fd, uint32_t events,
                          std::function<void(uint32_t)> ready);
  void ChangeEvents(WatchId watch, uint32_t events);
  void Unwatch(WatchId watch);

  TimerId RunAfter(Nanoseconds delay, std::function<void()> task);
  void CancelTimer(TimerId timer);
  // By the clock that its timers have.
  [[nodiscard]] Nanoseconds Now() const { return clock_->Now(); }

  [[nodiscard]] bool InLoopThread() const;

 private:
  struct Registration {
    int fd = -1;
    std::shared_ptr<std::function<void(uint32_t)>> ready;
  };

  EventLoop(const Clock* clock, UniqueFd epoll, UniqueFd wakeup);
  void RunPosted();
  void RunDueTimers();
  [[nodiscard]] int MillisecondsToNextTimer() const;

  const Clock* clock_;
  UniqueFd epoll_;
  UniqueFd wakeup_;
  std::unordered_map<WatchId, Registration> watches_;
  std::map<std::pair<Nanoseconds, TimerId>, std::function<void()>> timers_;
  uint64_t next_id_ = 1;
  std::atomic<uint64_t> thread_{0};

  Mutex mutex_;
  std::vector<std::function<void()>> posted_ RKNND_GUARDED_BY(mutex_);
  bool quit_ RKNND_GUARDED_BY(mutex_) = false;
};

}  // namespace rknnd::base

#endif  // BASE_POSIX_EVENT_LOOP_H_
