// See detection.h.

#include "examples/demo/detection.h"

#include <algorithm>

namespace rknnd::demo {
namespace {

constexpr float kSureEnough = 0.7F;
// Two boxes that share more than this of their union show one face.
constexpr float kSameFace = 0.3F;

float Area(const Detection& d) {
  return std::max(0.0F, d.right - d.left) * std::max(0.0F, d.bottom - d.top);
}

float Overlap(const Detection& a, const Detection& b) {
  const Detection both = {std::max(a.left, b.left), std::max(a.top, b.top),
                          std::min(a.right, b.right),
                          std::min(a.bottom, b.bottom)};
  const float shared = Area(both);
  return shared / (Area(a) + Area(b) - shared + 1e-9F);
}

}  // namespace

std::vector<Detection> Decode(std::span<const float> scores,
                              std::span<const float> boxes) {
  std::vector<Detection> sure;
  const size_t count = std::min(scores.size() / 2, boxes.size() / 4);
  for (size_t i = 0; i < count; ++i) {
    const float score = scores[2 * i + 1];
    if (score < kSureEnough) continue;
    sure.push_back({boxes[4 * i], boxes[4 * i + 1], boxes[4 * i + 2],
                    boxes[4 * i + 3], score});
  }
  std::sort(sure.begin(), sure.end(),
            [](const auto& a, const auto& b) { return a.score > b.score; });
  std::vector<Detection> kept;
  for (const Detection& candidate : sure) {
    const bool seen = std::any_of(
        kept.begin(), kept.end(),
        [&](const Detection& k) { return Overlap(k, candidate) > kSameFace; });
    if (!seen) kept.push_back(candidate);
  }
  return kept;
}

}  // namespace rknnd::demo
