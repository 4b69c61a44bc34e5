// Its tasks are core's; what they read of clients (model bytes) is checked
// there.

#include "daemon/loader.h"

#include <pthread.h>

#include <utility>

#include "base/posix/blocked_signals.h"

namespace rknnd {

void Loader::Start() {
  const base::BlockedSignals blocked;
  thread_ = std::thread([this] { Run(); });
}

void Loader::Stop() {
  {
    base::MutexLock lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
  // Destroyed without the lock: what a task owns may post.
  std::queue<std::function<void()>> dropped;
  {
    base::MutexLock lock(mutex_);
    dropped.swap(tasks_);
  }
}

void Loader::Post(std::function<void()> task) {
  {
    base::MutexLock lock(mutex_);
    if (stop_) return;
    tasks_.push(std::move(task));
  }
  changed_.notify_one();
}

void Loader::Run() {
  pthread_setname_np(pthread_self(), name_);
  for (;;) {
    std::function<void()> task;
    {
      base::MutexLock lock(mutex_);
      while (tasks_.empty() && !stop_) changed_.wait(mutex_);
      if (stop_) return;
      task = std::move(tasks_.front());
      tasks_.pop();
    }
    task();
  }
}

}  // namespace rknnd
