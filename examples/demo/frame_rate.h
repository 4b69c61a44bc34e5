// At how many frames a second the cameras of the demo film: as many as the
// machine was measured to compute, with room to spare, and fewer as soon as it
// turns out to compute less. By that the boxes of a frame are there within two
// frame times on any machine: frames are left out where others would wait.

#ifndef EXAMPLES_DEMO_FRAME_RATE_H_
#define EXAMPLES_DEMO_FRAME_RATE_H_

#include <cstddef>
#include <deque>
#include <vector>

#include "base/posix/clock.h"

namespace rknnd::demo {

// So many frames a camera has in flight at most. As many frames begin in two
// frame times, so where no more are lost than begin, two frame times are what
// the oldest of them takes.
inline constexpr size_t kFramesInFlight = 2;

// Thread: any, one at a time.
class FrameRate {
 public:
  // What the cameras did in a part of a second.
  struct Part {
    // Of the frames that have ended, for each camera.
    std::vector<std::vector<double>> latencies_us;
    size_t lost = 0;  // frames that were left out, by all of them
  };

  FrameRate(double highest, int cameras);

  // Frames a second, of each camera.
  [[nodiscard]] double rate() const { return rate_; }
  // Two frame times: what no camera's median latency is to be above.
  [[nodiscard]] double LongestLatencyUs() const;

  // Before the film: all cameras together have computed `fps` frames a second,
  // when each computed as fast as it could, with kFramesInFlight of them.
  void Measured(double fps);
  // While filming, with what came since the call before. Whether the rate is
  // lower now.
  bool Watch(base::Nanoseconds now, Part part);

 private:
  struct TimedPart {
    base::Nanoseconds time;
    Part part;
  };

  // What the machine sustains by latencies and losses that it shows at the
  // present rate; that rate itself where there is nothing to say against it.
  [[nodiscard]] double SustainedByLatency(base::Nanoseconds now) const;
  [[nodiscard]] double SustainedByLoss(base::Nanoseconds now) const;
  // `window`, or longer where few frames fall into that.
  [[nodiscard]] base::Nanoseconds Window(base::Nanoseconds window) const;
  void LowerTo(double sustained);

  const int cameras_;
  double rate_;
  base::Nanoseconds since_ = -1;  // the cameras film at this rate
  std::deque<TimedPart> parts_;   // since then
};

}  // namespace rknnd::demo

#endif  // EXAMPLES_DEMO_FRAME_RATE_H_
