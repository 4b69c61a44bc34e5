// The calls that are open, so that all of them can be told to end when the
// server stops.

#ifndef DAEMON_TRANSPORT_GRPC_INFERENCE_OPEN_CALLS_H_
#define DAEMON_TRANSPORT_GRPC_INFERENCE_OPEN_CALLS_H_

#include <set>

#include "base/posix/mutex.h"

namespace rknnd::transport {

class OpenCall {
 public:
  virtual ~OpenCall() = default;
  // Finishes the call soon. Must not wait for anybody. Thread: any.
  virtual void End() = 0;
};

// Thread: any.
class OpenCalls {
 public:
  // False: all have ended, and this one is to end at once.
  bool Add(OpenCall* call) {
    const base::MutexLock lock(mutex_);
    if (ended_) return false;
    calls_.insert(call);
    return true;
  }
  // Before the call is destroyed; End is not running on it after the return.
  void Remove(OpenCall* call) {
    const base::MutexLock lock(mutex_);
    calls_.erase(call);
  }
  void EndAll() {
    const base::MutexLock lock(mutex_);
    ended_ = true;
    for (OpenCall* const call : calls_) call->End();
  }

 private:
  base::Mutex mutex_;
  std::set<OpenCall*> calls_ RKNND_GUARDED_BY(mutex_);
  bool ended_ RKNND_GUARDED_BY(mutex_) = false;
};

}  // namespace rknnd::transport

#endif  // DAEMON_TRANSPORT_GRPC_INFERENCE_OPEN_CALLS_H_
