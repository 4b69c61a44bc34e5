// The two futex calls. Called by clients that wait for a completion and by
// workers that post one. The word may lie in memory the other side can remap.

#include "base/posix/futex.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>

#include "base/posix/hot_path.h"

namespace rknnd::base {

static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t) &&
              std::atomic<uint32_t>::is_always_lock_free);

RKNND_HOT_PATH void FutexWait(const std::atomic<uint32_t>* word,
                              uint32_t expected, Nanoseconds timeout) {
  timeout = std::max<Nanoseconds>(timeout, 0);
  timespec wait = {};
  wait.tv_sec = static_cast<time_t>(timeout / kSecond);
  wait.tv_nsec = static_cast<long>(timeout % kSecond);  // NOLINT: as declared
  // Not FUTEX_PRIVATE: the waker is another process.
  syscall(SYS_futex, word, FUTEX_WAIT, expected, &wait, nullptr, 0);
}

RKNND_HOT_PATH void FutexWakeOne(const std::atomic<uint32_t>* word) {
  syscall(SYS_futex, word, FUTEX_WAKE, 1, nullptr, nullptr, 0);
}

}  // namespace rknnd::base
