#include "client/target/progress.h"

#include "base/posix/mutex.h"

namespace rknnd::client {
namespace {

struct Listener {
  base::Mutex mutex;  // held over the call: who is gone is not called
  rknnd_progress callback RKNND_GUARDED_BY(mutex) = nullptr;
  void* user RKNND_GUARDED_BY(mutex) = nullptr;
};

Listener& TheListener() {
  static Listener listener;
  return listener;
}

}  // namespace

void SetProgress(rknnd_progress callback, void* user) {
  Listener& listener = TheListener();
  const base::MutexLock lock(listener.mutex);
  listener.callback = callback;
  listener.user = user;
}

void TellProgress(const char* what, uint64_t done, uint64_t total) {
  Listener& listener = TheListener();
  const base::MutexLock lock(listener.mutex);
  if (listener.callback != nullptr) {
    listener.callback(listener.user, what, done, total);
  }
}

}  // namespace rknnd::client
