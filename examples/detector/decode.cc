// See decode.h.

#include "examples/detector/decode.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

namespace rknnd::detector {
namespace {

constexpr std::array<int, 2> kStrides = {8, 16};
constexpr size_t kBoxChannels = 4;
// Two claims that share more than this of their union are of one figure.
constexpr float kSameFigure = 0.45F;
// No figure is larger than the picture: 4 is 54 cells.
constexpr float kLargestLog = 4;

float Area(const Box& box) {
  return std::max(0.0F, box.right - box.left) *
         std::max(0.0F, box.bottom - box.top);
}

Box Clipped(const Box& box) {
  return {std::clamp(box.left, 0.0F, 1.0F), std::clamp(box.top, 0.0F, 1.0F),
          std::clamp(box.right, 0.0F, 1.0F),
          std::clamp(box.bottom, 0.0F, 1.0F)};
}

// Adds what one grid claims.
void Collect(const std::vector<float>& scores, const std::vector<float>& boxes,
             int stride, float least, std::vector<Detection>* found) {
  const auto columns = static_cast<size_t>(kInputWidth / stride);
  const size_t cells = columns * static_cast<size_t>(kInputHeight / stride);
  if (scores.size() != cells * kKinds || boxes.size() != cells * kBoxChannels) {
    return;
  }
  const float cell_width = static_cast<float>(stride) / kInputWidth;
  const float cell_height = static_cast<float>(stride) / kInputHeight;
  const float least_logit = std::log(least / (1 - least));
  for (size_t i = 0; i < scores.size(); ++i) {
    if (!(scores[i] >= least_logit)) continue;  // nor a NaN
    const size_t cell = i % cells;
    const float* value = boxes.data() + cell;
    const float x =
        (static_cast<float>(cell % columns) + 0.5F + value[0]) * cell_width;
    const float y = (static_cast<float>(cell / columns) + 0.5F + value[cells]) *
                    cell_height;
    const float half_width =
        std::exp(std::min(value[2 * cells], kLargestLog)) * cell_width / 2;
    const float half_height =
        std::exp(std::min(value[3 * cells], kLargestLog)) * cell_height / 2;
    found->push_back({static_cast<Kind>(i / cells),
                      Clipped({x - half_width, y - half_height, x + half_width,
                               y + half_height}),
                      1 / (1 + std::exp(-scores[i]))});
  }
}

}  // namespace

float Overlap(const Box& a, const Box& b) {
  const Box both = {std::max(a.left, b.left), std::max(a.top, b.top),
                    std::min(a.right, b.right), std::min(a.bottom, b.bottom)};
  const float shared = Area(both);
  return shared / (Area(a) + Area(b) - shared + 1e-12F);
}

std::vector<Detection> Decode(const std::vector<std::vector<float>>& outputs,
                              float least) {
  std::vector<Detection> found;
  if (outputs.size() != 2 * kStrides.size()) return found;
  for (size_t i = 0; i < kStrides.size(); ++i) {
    Collect(outputs[2 * i], outputs[2 * i + 1], kStrides.at(i), least, &found);
  }
  std::stable_sort(
      found.begin(), found.end(),
      [](const Detection& a, const Detection& b) { return a.score > b.score; });
  std::vector<Detection> kept;
  for (const Detection& claim : found) {
    const bool known =
        std::any_of(kept.begin(), kept.end(), [&](const Detection& k) {
          return k.kind == claim.kind &&
                 Overlap(k.box, claim.box) > kSameFigure;
        });
    if (!known) kept.push_back(claim);
  }
  return kept;
}

}  // namespace rknnd::detector
