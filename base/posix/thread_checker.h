// Holds a class to its `Thread:` line: one checker member, one assert at the
// top of each method. Costs nothing in release builds.

#ifndef BASE_POSIX_THREAD_CHECKER_H_
#define BASE_POSIX_THREAD_CHECKER_H_

#include <atomic>
#include <cassert>
#include <thread>

namespace rknnd::base {

// Belongs to the first thread that asks. Thread: any.
class ThreadChecker {
 public:
  [[nodiscard]] bool CalledOnItsThread() const {
    const std::thread::id self = std::this_thread::get_id();
    std::thread::id owner;
    return owner_.compare_exchange_strong(owner, self) || owner == self;
  }
  // The next caller becomes the owner: for objects built on one thread and
  // used on another.
  void Detach() { owner_.store(std::thread::id()); }

 private:
  mutable std::atomic<std::thread::id> owner_{};
};

}  // namespace rknnd::base

#define RKNND_ASSERT_THREAD(checker) assert((checker).CalledOnItsThread())

#endif  // BASE_POSIX_THREAD_CHECKER_H_
