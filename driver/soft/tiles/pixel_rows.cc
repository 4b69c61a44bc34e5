// See pixel_rows.h.

#include "driver/soft/tiles/pixel_rows.h"

namespace rknnd::soft {
namespace {

constexpr int64_t kFewOutputs = 8;

}  // namespace

bool SuitsRows(const TileWindow& window) {
  // More channels fill vectors of every width by themselves, but for what is
  // left over.
  constexpr int64_t kLeastPixels = 12;
  return window.groups == 1 && window.strides[2] == 1 &&
         window.outputs <= kFewOutputs && window.output[2] >= kLeastPixels;
}

std::vector<ptrdiff_t> RowTaps(const TileWindow& window, const Band& band) {
  std::vector<ptrdiff_t> taps;
  const Sides& kernel = window.kernel;
  for (int64_t c = 0; c < window.channels; ++c) {
    for (int64_t d = 0; d < kernel[0]; ++d) {
      for (int64_t h = 0; h < kernel[1]; ++h) {
        for (int64_t w = 0; w < kernel[2]; ++w) {
          taps.push_back(RowPlace(window, band, c,
                                  d * band.rows + h * window.dilations[1]) +
                         w * window.dilations[2]);
        }
      }
    }
  }
  return taps;
}

int64_t RowOutputs(const TileWindow& window) {
  int64_t outputs = 1;
  while (outputs < window.outputs) outputs *= 2;
  return outputs;
}

void PackRows(const TileWindow& window, std::span<const float> weights,
              float* to) {
  const int64_t outputs = RowOutputs(window);
  const auto taps = static_cast<int64_t>(weights.size()) / window.outputs;
  for (int64_t o = 0; o < window.outputs; ++o) {
    for (int64_t tap = 0; tap < taps; ++tap) {
      to[tap * outputs + o] = weights[static_cast<size_t>(o * taps + tap)];
    }
  }
}

}  // namespace rknnd::soft
