// A line that tells how far long work is: what, a bar, rate and time left, on
// stderr and only where that is a terminal. Verbs make one and tell it; it is
// drawn over itself, a few times a second, and gone when its object is or when
// a signal ends the program. Short work shows nothing.

#ifndef CLIENT_CTL_TEXT_PROGRESS_H_
#define CLIENT_CTL_TEXT_PROGRESS_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/posix/mutex.h"

namespace rknnd::client {

// What is drawn.
struct ProgressLine {
  std::string what;              // any bytes
  uint64_t done = 0, total = 0;  // total 0: nobody knows
  bool bytes = false;            // else things: layers, runs
  double seconds = 0;            // since the work began
};
// In at most `columns`, which may be few.
[[nodiscard]] std::string DrawProgress(const ProgressLine& line, size_t columns,
                                       bool unicode);

// Thread: any; Update may come from a library's own.
class Progress {
 public:
  enum class Unit { kThings, kBytes };
  // `quiet`: shows nothing at all, as with --json.
  Progress(bool quiet, Unit unit);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Another `what` begins the time and the rate anew.
  void Update(const std::string& what, uint64_t done, uint64_t total);
  // Takes it from the screen, until the next Update.
  void Clear();

 private:
  using Clock = std::chrono::steady_clock;

  const bool shown_;
  const Unit unit_;
  base::Mutex mutex_;
  std::string what_ RKNND_GUARDED_BY(mutex_);
  Clock::time_point begun_ RKNND_GUARDED_BY(mutex_);
  Clock::time_point drawn_ RKNND_GUARDED_BY(mutex_);
  bool visible_ RKNND_GUARDED_BY(mutex_) = false;
};

}  // namespace rknnd::client

#endif  // CLIENT_CTL_TEXT_PROGRESS_H_
