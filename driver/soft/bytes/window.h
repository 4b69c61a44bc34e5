// How a convolution's window walks over a channels-last picture, and how the
// part of the picture that some rows of the output need is laid out for the
// functions of byte_kernels.h: padding written out, so that they meet no edge.
//
//   picture (bytes)      band (bytes, int16 or floats)
//   +-----------+        0 0 0 0 0 0 0 0
//   | row       |  --->  0 r o w . . . 0   rows of the picture that one band of
//   | row       |        0 r o w . . . 0   the output's rows reads, in the form
//   | row       |                          that the CPU multiplies
//
// All sizes in pixels and channels unless said. Thread: any; immutable.

#ifndef DRIVER_SOFT_BYTES_WINDOW_H_
#define DRIVER_SOFT_BYTES_WINDOW_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace rknnd::soft {

// Depth, height and width; 1 where the layer has fewer axes.
using Sides = std::array<int64_t, 3>;

struct ByteWindow {
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
  [[nodiscard]] ByteWindow Simplified() const;
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
  [[nodiscard]] int64_t values(const ByteWindow& window) const {
    return window.kernel[0] * rows * row_values();
  }
};

// The band that fits `bytes` of a core's cache, of at least one row of the
// output; `channels` of the input's at a time.
Band BandFor(const ByteWindow& window, int64_t channels, size_t value_size,
             size_t bytes);
// The picture itself, where it can be read as it is.
Band WholePicture(const ByteWindow& window);

// The runs of a window over a band.
WindowRuns RunsOf(const ByteWindow& window, const Band& band);

// Output rows [begin, end) of the picture at depth `depth`, of one image.
struct BandRows {
  int64_t image = 0, depth = 0, begin = 0, end = 0;
};
// Cuts rows [first, last) of all images' into bands and calls f(BandRows).
template <class F>
void ForEachBand(const ByteWindow& window, int64_t band_rows, int64_t first,
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

}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_BYTES_WINDOW_H_
