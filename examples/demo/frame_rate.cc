// See frame_rate.h.

#include "examples/demo/frame_rate.h"

#include <algorithm>
#include <array>
#include <utility>

#include "examples/demo/figures.h"

namespace rknnd::demo {
namespace {

// Those that people know from cameras. A camera cannot film at none: the last
// one is for whatever is slower.
constexpr std::array<double, 25> kRates = {
    100, 80, 60, 50, 40, 30,  25,  20,  15,  12,   10,   8,   6,
    5,   4,  3,  2,  1,  0.5, 0.3, 0.2, 0.1, 0.05, 0.02, 0.01};
// This share of what a machine computes is asked of it: frames do not come
// evenly, and the machine has other things to do.
constexpr double kAsked = 0.75;
// A machine that loses more than this share of the frames is too slow for them.
constexpr double kLostShare = 0.25;
// Latencies count for as long. Losses for longer, so that one stall of a part
// of a second, in which many are lost, is not taken for a slow machine.
constexpr base::Nanoseconds kLatencyWindow = base::kSecond;
constexpr base::Nanoseconds kLossWindow = 2 * base::kSecond;
constexpr double kMicrosecondsPerSecond = 1e6;

}  // namespace

FrameRate::FrameRate(double highest, int cameras)
    : cameras_(cameras), rate_(highest) {}

double FrameRate::LongestLatencyUs() const {
  return 2 * kMicrosecondsPerSecond / rate_;
}

void FrameRate::Measured(double fps) {
  if (const double sustained = kAsked * fps / cameras_; sustained < rate_) {
    LowerTo(sustained);
  }
}

bool FrameRate::Watch(base::Nanoseconds now, Part part) {
  if (since_ < 0) since_ = now;
  parts_.push_back({now, std::move(part)});
  while (parts_.front().time <= now - Window(kLossWindow)) parts_.pop_front();
  const double before = rate_;
  if (const double sustained =
          std::min(SustainedByLatency(now), SustainedByLoss(now));
      sustained < rate_) {
    LowerTo(sustained);
  }
  if (rate_ == before) return false;
  // What was seen at the old rate says nothing about the new one.
  parts_.clear();
  since_ = now;
  return true;
}

double FrameRate::SustainedByLatency(base::Nanoseconds now) const {
  std::vector<std::vector<double>> latencies(static_cast<size_t>(cameras_));
  for (const TimedPart& timed : parts_) {
    if (timed.time <= now - Window(kLatencyWindow)) continue;
    for (size_t i = 0; i < timed.part.latencies_us.size(); ++i) {
      const std::vector<double>& more = timed.part.latencies_us[i];
      latencies.at(i).insert(latencies.at(i).end(), more.begin(), more.end());
    }
  }
  double longest = 0;
  for (std::vector<double>& of_camera : latencies) {
    longest = std::max(longest, Percentile(std::move(of_camera), 0.5));
  }
  if (longest <= LongestLatencyUs()) return rate_;
  // As in the measurement: the camera is never without a frame in flight then.
  return kAsked * kFramesInFlight * kMicrosecondsPerSecond / longest;
}

double FrameRate::SustainedByLoss(base::Nanoseconds now) const {
  if (now - since_ < Window(kLossWindow)) return rate_;
  double filmed = 0, lost = 0;
  for (const TimedPart& timed : parts_) {
    for (const std::vector<double>& of_camera : timed.part.latencies_us) {
      filmed += static_cast<double>(of_camera.size());
    }
    lost += static_cast<double>(timed.part.lost);
  }
  if (lost <= kLostShare * (filmed + lost)) return rate_;
  return kAsked * rate_ * filmed / (filmed + lost);
}

base::Nanoseconds FrameRate::Window(base::Nanoseconds window) const {
  return std::max(window, static_cast<base::Nanoseconds>(
                              2 * static_cast<double>(base::kSecond) / rate_));
}

void FrameRate::LowerTo(double sustained) {
  const auto* const known =
      std::find_if(kRates.begin(), kRates.end(),
                   [=](double rate) { return rate <= sustained; });
  rate_ = std::min(rate_, known == kRates.end() ? kRates.back() : *known);
}

}  // namespace rknnd::demo
