// See frame_schedule.h.

#include "examples/demo/frame_schedule.h"

#include <algorithm>
#include <utility>

namespace rknnd::demo {
namespace {

base::Nanoseconds Period(double rate) {
  return static_cast<base::Nanoseconds>(static_cast<double>(base::kSecond) /
                                        rate);
}

}  // namespace

FrameSchedule::FrameSchedule(double rate, base::Nanoseconds begin,
                             base::Nanoseconds end)
    : rate_(rate), period_(Period(rate)), next_(begin), end_(end) {}

base::Nanoseconds FrameSchedule::NextTime() const {
  return std::min(next_, end_);
}

base::Nanoseconds FrameSchedule::Take(base::Nanoseconds now) {
  // None comes at the end.
  const base::Nanoseconds skipped =
      std::max<base::Nanoseconds>(0, std::min(now, end_ - 1) - next_) / period_;
  lost_ += static_cast<size_t>(skipped);
  const base::Nanoseconds taken = next_ + skipped * period_;
  next_ = taken + period_;
  return taken;
}

void FrameSchedule::Leave(base::Nanoseconds now) {
  Take(now);
  ++lost_;
}

size_t FrameSchedule::TakeLost() { return std::exchange(lost_, 0); }

void FrameSchedule::SetRate(double rate) {
  next_ -= period_;
  rate_ = rate;
  period_ = Period(rate);
  next_ += period_;
}

}  // namespace rknnd::demo
