// A thread for what takes long and is nobody's hot path. The daemon has three,
// so that memory does not wait for a compilation, nor either for a disk: the
// loader (hashing and compiling models, the cache folder), the pager
// (populating, filling and copying memory), and that of the model repository.
// Whoever posts to them has the result posted back.

#ifndef BASE_POSIX_TASK_THREAD_H_
#define BASE_POSIX_TASK_THREAD_H_

#include <functional>
#include <queue>
#include <thread>

#include "base/posix/event_loop.h"
#include "base/posix/mutex.h"

namespace rknnd::base {

// Runs tasks one after the other. Thread: any (Post); owner (all else).
class TaskThread final : public Executor {
 public:
  // `name`: the thread's, at most 15 bytes. `niceness`: so much below that of
  // the thread that starts it (setpriority(2)).
  explicit TaskThread(const char* name, int niceness = 0)
      : name_(name), niceness_(niceness) {}
  ~TaskThread() override { Stop(); }

  void Start();
  // Ends the thread after the task it is at; later ones are dropped.
  void Stop();

  void Post(std::function<void()> task) override;

 private:
  void Run();

  const char* const name_;
  const int niceness_;
  std::thread thread_;
  CondVar changed_;
  Mutex mutex_;
  std::queue<std::function<void()>> tasks_ RKNND_GUARDED_BY(mutex_);
  bool stop_ RKNND_GUARDED_BY(mutex_) = false;
};

}  // namespace rknnd::base

#endif  // BASE_POSIX_TASK_THREAD_H_
