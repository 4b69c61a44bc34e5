// How clients are told that there is something for them to read. Whoever sends
// wakes all that wait for it, in its own time, and so does whoever receives, as
// there is room to send then: a client that lets tens of thousands of epoll
// sets wait for one descriptor makes each of both last for a tenth of a second
// and more, during which nothing else runs on that CPU. So they are timed. A
// user who has taken too much of the time of the loop or of workers in this way
// is late from then on, as long as the daemon lives: a thread of its own tells
// it, its requests are received with pauses between them, and its fences are
// signalled with longer ones. It holds up itself.
//
// What is left: what a user could make last before that, which is one call of
// each thread of the daemon; then a fiftieth of the loop's time, and one part
// in four hundred of a CPU's.

#ifndef DAEMON_TRANSPORT_SESSION_RING_NOTICES_H_
#define DAEMON_TRANSPORT_SESSION_RING_NOTICES_H_

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/posix/clock.h"
#include "base/posix/event_loop.h"
#include "base/posix/mutex.h"
#include "base/values/expected.h"
#include "daemon/core/terms/types.h"
#include "daemon/transport/session/event_log.h"
#include "daemon/transport/session/user_threads.h"

namespace rknnd::transport {

// The loop, for threads that may outlive it.
class LoopLink {
 public:
  explicit LoopLink(base::EventLoop* loop) : loop_(loop) {}
  // Nothing is posted from now on. Thread: loop.
  void Cut();
  // Thread: any.
  void Post(std::function<void()> task);

 private:
  base::Mutex mutex_;
  base::EventLoop* loop_ RKNND_GUARDED_BY(mutex_);
};

// Of one user. Thread: any.
class Notices final : public core::FenceOwner {
 public:
  using Send = std::function<base::Expected<void>()>;

  Notices(std::string user, std::shared_ptr<UserThreads> threads,
          std::shared_ptr<LoopLink> loop, FailureLog* failures)
      : user_(std::move(user)),
        threads_(std::move(threads)),
        loop_(std::move(loop)),
        failures_(failures) {}

  [[nodiscard]] bool late() const {
    return late_.load(std::memory_order_relaxed);
  }
  // How long nothing is to be received of a user who is late.
  [[nodiscard]] base::Nanoseconds Pause();
  // Calls `send`, which does not block, or receives, and times it.
  template <class F>
  auto Now(const F& send) {
    const Timed timed(this);
    return send();
  }
  // Calls it on the user's thread, behind what is told and closed there; then
  // `sent`, if any, in the loop with its result. False, and nothing is done,
  // where too much of the user's waits.
  bool Later(Send send, std::function<void(const base::Expected<void>&)> sent);
  // Calls it there as well, in an order of its own, and with pauses after what
  // lasted. False as above.
  bool Seldom(std::function<void()> tell);

 private:
  // Time of this thread while it lives, on a CPU: being preempted is nobody's
  // fault.
  class Timed {
   public:
    explicit Timed(Notices* notices);
    ~Timed();
    Timed(const Timed&) = delete;
    Timed& operator=(const Timed&) = delete;

   private:
    Notices* const notices_;
    const base::Nanoseconds begin_;
  };

  void Took(base::Nanoseconds time);

  const std::string user_;
  const std::shared_ptr<UserThreads> threads_;
  const std::shared_ptr<LoopLink> loop_;
  FailureLog* const failures_;
  std::atomic<bool> late_{false};
  base::Mutex mutex_;
  base::Nanoseconds taken_ RKNND_GUARDED_BY(mutex_) = 0;  // lately
  base::Nanoseconds since_ RKNND_GUARDED_BY(mutex_) = 0;
  base::Nanoseconds pause_until_ RKNND_GUARDED_BY(mutex_) = 0;
};

// Thread: loop.
class NoticesByUser {
 public:
  NoticesByUser(std::shared_ptr<UserThreads> threads, base::EventLoop* loop,
                FailureLog* failures)
      : threads_(std::move(threads)),
        loop_(std::make_shared<LoopLink>(loop)),
        failures_(failures) {}
  ~NoticesByUser() { loop_->Cut(); }
  NoticesByUser(const NoticesByUser&) = delete;
  NoticesByUser& operator=(const NoticesByUser&) = delete;

  std::shared_ptr<Notices> Of(const std::string& user);

 private:
  const std::shared_ptr<UserThreads> threads_;
  const std::shared_ptr<LoopLink> loop_;
  FailureLog* const failures_;
  // Those in use, and those that are late.
  std::map<std::string, std::shared_ptr<Notices>> known_;
};

}  // namespace rknnd::transport

#endif  // DAEMON_TRANSPORT_SESSION_RING_NOTICES_H_
