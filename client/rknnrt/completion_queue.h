// A queue of completions: runs of any contexts, whose ends a program takes from
// one place, and a descriptor that its event loop watches. Made and used by
// rknnd_queue_* and rknnd_submit, on the program's threads.

#ifndef CLIENT_RKNNRT_COMPLETION_QUEUE_H_
#define CLIENT_RKNNRT_COMPLETION_QUEUE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/posix/mutex.h"
#include "base/values/expected.h"
#include "client/include/rknnd.h"
#include "client/rknnrt/context/context.h"
#include "client/session/target.h"

namespace rknnd::client {

// Thread: any. The lock is never held while a context, a daemon or a program's
// callback is called; the target's look at a run waits for nothing.
class CompletionQueue {
 public:
  static base::Expected<std::shared_ptr<CompletionQueue>> Make(
      std::shared_ptr<Target> target);

  [[nodiscard]] int fd() const { return notice_->fd(); }
  [[nodiscard]] const Target* target() const { return target_.get(); }

  // Starts a run whose end is told here.
  struct Label {
    void* user = nullptr;
    rknnd_callback callback = nullptr;
  };
  Outcome Submit(const std::shared_ptr<Context>& context, RunOptions options,
                 const Label& label, Submitted* submitted);

  struct Taken {
    rknnd_completion completion{};
    rknnd_callback callback = nullptr;
    std::string text;  // why it failed
  };
  // False: none is there. An error: the queue is destroyed.
  base::Expected<bool> Next(Taken* taken);
  // Runs on their way, and such that wait to be taken.
  [[nodiscard]] size_t size();
  // Once; what is on its way ends, and nobody is told.
  void Close();

 private:
  struct Entry {
    RunRef run;
    std::shared_ptr<Context> context;
    uint64_t frame = 0, serial = 0;
    uint32_t set = 0;
    Label label;
  };

  CompletionQueue(std::shared_ptr<Target> target,
                  std::shared_ptr<RunNotice> notice);

  // Before what refers to it.
  const std::shared_ptr<Target> target_;
  const std::shared_ptr<RunNotice> notice_;

  base::Mutex mutex_;
  bool closed_ RKNND_GUARDED_BY(mutex_) = false;
  // In the order of their start.
  std::vector<Entry> entries_ RKNND_GUARDED_BY(mutex_);
};

}  // namespace rknnd::client

#endif  // CLIENT_RKNNRT_COMPLETION_QUEUE_H_
