// How a convolution's window walks over a channels-last picture, and how the
// part of the picture that some rows of the output need is laid out for the
// functions of tile_kernels.h: padding written out, so that they meet no edge.
//
//   picture (bytes)      band (bytes, int16 or floats)
//   +-----------+        0 0 0 0 0 0 0 0
//   | row       |  --->  0 r o w . . . 0   rows of the picture that one band of
//   | row       |        0 r o w . . . 0   the output's rows reads, in the form
//   | row       |                          that the CPU multiplies
//
// All sizes in pixels and channels unless said. Thread: any; immutable.

#ifndef DRIVER_SOFT_TILES_WINDOW_H_
#define DRIVER_SOFT_TILES_WINDOW_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace rknnd::soft {

// Depth, height and width; 1 where the layer has fewer axes.
using Sides = std::array<int64_t, 3>;

struct TileWindow {
  int64_t images = 1;
  int64_t channels = 1;  // of the input
  int64_t outputs = 1;   // channels
  int64_t groups = 1;
  Sides input = {1, 1, 1}, output = {1, 1, 1}, kernel = {1, 1, 1};
  Sides strides = {1, 1, 1}, dilations = {1, 1, 1}, pads = {0, 0, 0};
  // Whether the whole of what it reads lies inside the picture.
  bool has_padding = false;

  // The same with fewer and longer runs of memory, where pixels that follow
  // each other are all alike: those of a pointwise layer, or of one with one
  // axis.
  [[nodiscard]] TileWindow Simplified() const;
  // Each channel by itself.
  [[nodiscard]] bool is_depthwise() const {
    return groups == channels && outputs == channels;
  }
  // Rows of the output, of all images.
  [[nodiscard]] int64_t rows() const { return images * output[0] * output[1]; }
};

// Stretches of memory that a pixel's window reads, each of `length` values that
// lie one behind the other, and where each begins from the window's corner, in
// values. Weights are packed in their order: kernel positions from the
// outermost axis in, the channels of each together.
struct WindowRuns {
  std::vector<ptrdiff_t> offsets;
  int64_t length = 0;
  int64_t positions = 1;  // kernel positions in a run
};

// Where rows of the picture lie in the band.
struct Band {
  int64_t output_rows = 1;  // at most, of one image and depth
  int64_t rows = 1;         // of the picture, of each depth
  int64_t width = 1;        // pixels of a row, with padding
  int64_t channels = 1;     // of a pixel

  [[nodiscard]] int64_t row_values() const { return width * channels; }
  [[nodiscard]] int64_t values(const TileWindow& window) const {
    return window.kernel[0] * rows * row_values();
  }
};

// The band that fits `bytes` of a core's cache, of at least one row of the
// output; `channels` of the input's at a time.
Band BandFor(const TileWindow& window, int64_t channels, size_t value_size,
             size_t bytes);
// The picture itself, where it can be read as it is.
Band WholePicture(const TileWindow& window);

// The runs of a window over a band.
WindowRuns RunsOf(const TileWindow& window, const Band& band);

// Where the pixels of a row of the picture lie in one of the band's.
struct BandRow {
  int64_t before = 0;  // pixels of padding
  int64_t first = 0;   // pixel of the picture's that comes then
  int64_t inside = 0;  // so many of them
  int64_t after = 0;   // pixels of padding
};
BandRow RowOf(const TileWindow& window, const Band& band);

// Output rows [begin, end) of the picture at depth `depth`, of one image.
struct BandRows {
  int64_t image = 0, depth = 0, begin = 0, end = 0;
};
// Cuts rows [first, last) of all images' into bands and calls f(BandRows).
template <class F>
void ForEachBand(const TileWindow& window, int64_t band_rows, int64_t first,
                 int64_t last, F&& f) {
  while (first < last) {
    const int64_t plane = first / window.output[1];
    const int64_t begin = first % window.output[1];
    int64_t end = begin + band_rows;
    if (end > window.output[1]) end = window.output[1];
    if (end - begin > last - first) end = begin + (last - first);
    f(BandRows{plane / window.output[0], plane % window.output[0], begin, end});
    first += end - begin;
  }
}

// Rows of the picture, with padding, that `rows` need at each depth.
inline int64_t HeightOf(const TileWindow& window, const BandRows& rows) {
  return (rows.end - rows.begin - 1) * window.strides[1] +
         (window.kernel[1] - 1) * window.dilations[1] + 1;
}

// Calls f(number of the band's row, row of the image's picture or -1 for one of
// padding) for all that `rows` need, in order.
template <class F>
void ForEachBandRow(const TileWindow& window, const Band& band,
                    const BandRows& rows, F&& f) {
  const int64_t height = HeightOf(window, rows);
  const int64_t top = rows.begin * window.strides[1] - window.pads[1];
  for (int64_t d = 0; d < window.kernel[0]; ++d) {
    const int64_t depth = rows.depth * window.strides[0] - window.pads[0] +
                          d * window.dilations[0];
    for (int64_t r = 0; r < height; ++r) {
      const int64_t y = top + r;
      const bool inside = depth >= 0 && depth < window.input[0] && y >= 0 &&
                          y < window.input[1];
      f(d * band.rows + r, inside ? depth * window.input[1] + y : -1);
    }
  }
}

// The addresses of the band's pixels that output pixels begin at, up to kPixels
// at a time: calls f(addresses, count, number of the first pixel in these
// rows). `band` is that of the first row's first pixel. `whole_rows`: none of
// these calls spans two rows.
inline constexpr size_t kPixelsAtOnce = 256;
template <class F>
void ForEachPixels(const TileWindow& window, const Band& layout,
                   const BandRows& rows, const std::byte* band,
                   size_t value_size, bool whole_rows, F&& f) {
  std::array<const std::byte*, kPixelsAtOnce> pixels;
  size_t count = 0;
  int64_t number = 0;
  const auto flush = [&] {
    if (count > 0) f(pixels.data(), count, number);
    number += static_cast<int64_t>(count);
    count = 0;
  };
  const auto size = static_cast<int64_t>(value_size);
  const int64_t row_step = window.strides[1] * layout.row_values() * size;
  const int64_t step = window.strides[2] * layout.channels * size;
  for (int64_t y = rows.begin; y < rows.end; ++y, band += row_step) {
    const std::byte* pixel = band;
    for (int64_t x = 0; x < window.output[2]; ++x, pixel += step) {
      pixels[count++] = pixel;
      if (count == kPixelsAtOnce) flush();
    }
    if (whole_rows) flush();
  }
  flush();
}

}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_TILES_WINDOW_H_
