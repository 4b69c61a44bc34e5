// The way from gRPC's threads to the loop, which is shut when the daemon stops:
// nothing is posted after that.

#ifndef DAEMON_TRANSPORT_GRPC_SESSION_LOOP_QUEUE_H_
#define DAEMON_TRANSPORT_GRPC_SESSION_LOOP_QUEUE_H_

#include <functional>
#include <utility>

#include "base/posix/event_loop.h"
#include "base/posix/mutex.h"

namespace rknnd::transport {

// Thread: any.
class LoopQueue {
 public:
  explicit LoopQueue(base::Executor* loop) : loop_(loop) {}

  // False: it is shut, and `task` is never called.
  bool Post(std::function<void()> task) {
    base::MutexLock lock(mutex_);
    if (loop_ == nullptr) return false;
    loop_->Post(std::move(task));
    return true;
  }
  void Shut() {
    base::MutexLock lock(mutex_);
    loop_ = nullptr;
  }

 private:
  base::Mutex mutex_;
  base::Executor* loop_ RKNND_GUARDED_BY(mutex_);
};

}  // namespace rknnd::transport

#endif  // DAEMON_TRANSPORT_GRPC_SESSION_LOOP_QUEUE_H_
