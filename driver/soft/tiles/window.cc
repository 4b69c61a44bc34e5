// See window.h.

#include "driver/soft/tiles/window.h"

#include <algorithm>

namespace rknnd::soft {

TileWindow TileWindow::Simplified() const {
  TileWindow simple = *this;
  constexpr Sides kOnes = {1, 1, 1};
  if (kernel == kOnes && strides == kOnes && !has_padding) {
    // Pixels one below the other, in one picture.
    const int64_t pixels = images * output[0] * output[1] * output[2];
    simple.images = 1;
    simple.input = simple.output = {1, pixels, 1};
    return simple;
  }
  if (input[0] == 1 && input[1] == 1 && output[1] == 1 && kernel[0] == 1 &&
      kernel[1] == 1 && pads[0] == 0 && pads[1] == 0) {
    // One axis: its window becomes a run.
    for (Sides* sides : {&simple.input, &simple.output, &simple.kernel,
                         &simple.strides, &simple.dilations, &simple.pads}) {
      std::swap((*sides)[1], (*sides)[2]);
    }
  }
  return simple;
}

Band BandFor(const TileWindow& window, int64_t channels, size_t value_size,
             size_t bytes) {
  Band band;
  band.channels = channels;
  band.width = (window.output[2] - 1) * window.strides[2] +
               (window.kernel[2] - 1) * window.dilations[2] + 1;
  const int64_t extent = (window.kernel[1] - 1) * window.dilations[1] + 1;
  const int64_t row = window.kernel[0] * band.row_values();
  const int64_t fit =
      static_cast<int64_t>(bytes) / (row * static_cast<int64_t>(value_size));
  band.output_rows = std::clamp<int64_t>((fit - extent) / window.strides[1] + 1,
                                         1, window.output[1]);
  band.rows = (band.output_rows - 1) * window.strides[1] + extent;
  return band;
}

Band WholePicture(const TileWindow& window) {
  return {window.output[1], window.input[1], window.input[2], window.channels};
}

BandRow RowOf(const TileWindow& window, const Band& band) {
  BandRow row;
  row.before = std::clamp<int64_t>(window.pads[2], 0, band.width);
  row.first = std::max<int64_t>(-window.pads[2], 0);
  row.inside = std::clamp<int64_t>(window.input[2] - row.first, 0,
                                   band.width - row.before);
  row.after = band.width - row.before - row.inside;
  return row;
}

WindowRuns RunsOf(const TileWindow& window, const Band& band) {
  WindowRuns runs;
  const int64_t each = window.channels / window.groups;
  const Sides& kernel = window.kernel;
  // How many positions of the kernel lie behind each other.
  runs.length = window.is_depthwise() ? 1 : each;
  if (window.groups == 1) {
    if (window.dilations[2] == 1 || kernel[2] == 1) {
      runs.positions = kernel[2];
      if (band.width == kernel[2] &&
          (window.dilations[1] == 1 || kernel[1] == 1)) {
        runs.positions *= kernel[1];
      }
    }
    runs.length *= runs.positions;
  }
  int64_t position = 0;
  for (int64_t d = 0; d < kernel[0]; ++d) {
    for (int64_t h = 0; h < kernel[1]; ++h) {
      for (int64_t w = 0; w < kernel[2]; ++w, ++position) {
        if (position % runs.positions != 0) continue;
        runs.offsets.push_back((d * band.rows + h * window.dilations[1]) *
                                   band.row_values() +
                               w * window.dilations[2] * band.channels);
      }
    }
  }
  return runs;
}

}  // namespace rknnd::soft
