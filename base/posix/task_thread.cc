// Started and ended by its owner; what tasks read of clients is checked where
// they come from.

#include "base/posix/task_thread.h"

#include <pthread.h>
#include <sys/resource.h>

#include <utility>

#include "base/posix/blocked_signals.h"

namespace rknnd::base {

void TaskThread::Start() {
  const BlockedSignals blocked;
  thread_ = std::thread([this] { Run(); });
  // From here, so that whoever looks once this has returned finds the name.
  pthread_setname_np(thread_.native_handle(), name_);
}

void TaskThread::Stop() {
  {
    MutexLock lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
  // Destroyed without the lock: what a task owns may post.
  std::queue<std::function<void()>> dropped;
  {
    MutexLock lock(mutex_);
    dropped.swap(tasks_);
  }
}

void TaskThread::Post(std::function<void()> task) {
  {
    MutexLock lock(mutex_);
    if (stop_) return;
    tasks_.push(std::move(task));
  }
  changed_.notify_one();
}

void TaskThread::Run() {
  // Of this thread only.
  setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) + niceness_);
  for (;;) {
    std::function<void()> task;
    {
      MutexLock lock(mutex_);
      while (tasks_.empty() && !stop_) changed_.wait(mutex_);
      if (stop_) return;
      task = std::move(tasks_.front());
      tasks_.pop();
    }
    task();
  }
}

}  // namespace rknnd::base
