// When a camera has frames: evenly, so many a second, from the film's begin to
// its end. Frames that nobody takes are lost, as a camera's are.

#ifndef EXAMPLES_DEMO_FRAME_SCHEDULE_H_
#define EXAMPLES_DEMO_FRAME_SCHEDULE_H_

#include <cstddef>

#include "base/posix/clock.h"

namespace rknnd::demo {

// Thread: any, one at a time.
class FrameSchedule {
 public:
  // The first frame comes at `begin`, and none at `end` or later.
  FrameSchedule(double rate, base::Nanoseconds begin, base::Nanoseconds end);

  [[nodiscard]] double rate() const { return rate_; }
  [[nodiscard]] base::Nanoseconds end() const { return end_; }
  // Of the next frame; end() after the last one.
  [[nodiscard]] base::Nanoseconds NextTime() const;
  [[nodiscard]] bool IsDue(base::Nanoseconds now) const {
    return next_ < end_ && next_ <= now;
  }

  // The newest frame, once one is due: its time. Those before it are lost.
  base::Nanoseconds Take(base::Nanoseconds now);
  // The same, but that one is lost, too.
  void Leave(base::Nanoseconds now);
  // How many were since the last call.
  size_t TakeLost();

  // From the last frame on that came.
  void SetRate(double rate);

 private:
  double rate_;
  base::Nanoseconds period_;
  base::Nanoseconds next_;
  const base::Nanoseconds end_;
  size_t lost_ = 0;
};

}  // namespace rknnd::demo

#endif  // EXAMPLES_DEMO_FRAME_SCHEDULE_H_
