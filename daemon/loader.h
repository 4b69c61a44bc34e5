// A thread for what takes long and is nobody's hot path. There are two, so that
// memory does not wait for a compilation: the loader (hashing and compiling
// models, the cache folder) and the pager (populating, filling and copying
// memory). Core posts to them and is posted back to.

#ifndef DAEMON_LOADER_H_
#define DAEMON_LOADER_H_

#include <functional>
#include <queue>
#include <thread>

#include "base/posix/event_loop.h"
#include "base/posix/mutex.h"

namespace rknnd {

// Runs tasks one after the other. Thread: any (Post); owner (all else).
class Loader final : public base::Executor {
 public:
  // `name`: the thread's, at most 15 bytes.
  explicit Loader(const char* name) : name_(name) {}
  ~Loader() override { Stop(); }

  void Start();
  // Ends the thread after the task it is at; later ones are dropped.
  void Stop();

  void Post(std::function<void()> task) override;

 private:
  void Run();

  const char* const name_;
  std::thread thread_;
  base::CondVar changed_;
  base::Mutex mutex_;
  std::queue<std::function<void()>> tasks_ RKNND_GUARDED_BY(mutex_);
  bool stop_ RKNND_GUARDED_BY(mutex_) = false;
};

}  // namespace rknnd

#endif  // DAEMON_LOADER_H_
