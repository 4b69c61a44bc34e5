// std::mutex with clang's thread-safety annotations. Not absl::Mutex: the
// client library carries no abseil, and ThreadSanitizer cannot see into
// Debian's uninstrumented one.

#ifndef BASE_POSIX_MUTEX_H_
#define BASE_POSIX_MUTEX_H_

#include <condition_variable>
#include <mutex>

#if defined(__clang__)
#define RKNND_THREAD_ANNOTATION(x) __attribute__((x))
#else
#define RKNND_THREAD_ANNOTATION(x)
#endif

#define RKNND_CAPABILITY(x) RKNND_THREAD_ANNOTATION(capability(x))
#define RKNND_SCOPED_CAPABILITY RKNND_THREAD_ANNOTATION(scoped_lockable)
#define RKNND_GUARDED_BY(x) RKNND_THREAD_ANNOTATION(guarded_by(x))
#define RKNND_REQUIRES(...) \
  RKNND_THREAD_ANNOTATION(requires_capability(__VA_ARGS__))
#define RKNND_EXCLUDES(...) RKNND_THREAD_ANNOTATION(locks_excluded(__VA_ARGS__))
#define RKNND_ACQUIRE(...) \
  RKNND_THREAD_ANNOTATION(acquire_capability(__VA_ARGS__))
#define RKNND_RELEASE(...) \
  RKNND_THREAD_ANNOTATION(release_capability(__VA_ARGS__))
#define RKNND_TRY_ACQUIRE(...) \
  RKNND_THREAD_ANNOTATION(try_acquire_capability(__VA_ARGS__))
#define RKNND_NO_THREAD_SAFETY_ANALYSIS \
  RKNND_THREAD_ANNOTATION(no_thread_safety_analysis)

namespace rknnd::base {

// Thread: any.
class RKNND_CAPABILITY("mutex") Mutex {
 public:
  void lock() RKNND_ACQUIRE() { mutex_.lock(); }      // NOLINT: std's name
  void unlock() RKNND_RELEASE() { mutex_.unlock(); }  // NOLINT: std's name
  // True: it is the caller's.
  bool TryLock() RKNND_TRY_ACQUIRE(true) { return mutex_.try_lock(); }

 private:
  std::mutex mutex_;
};

class RKNND_SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) RKNND_ACQUIRE(mutex) : mutex_(mutex) {
    mutex_.lock();
  }
  ~MutexLock() RKNND_RELEASE() { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

// Waits on a base::Mutex that the caller holds.
using CondVar = std::condition_variable_any;

}  // namespace rknnd::base

#endif  // BASE_POSIX_MUTEX_H_
