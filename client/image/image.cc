#include "client/image/image.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace rknnd::client {
namespace {

// For each pixel of one target axis: the two source pixels it lies between and
// how near it is to the second, in 1/256. Whole numbers, so that every machine
// computes the same picture.
struct Tap {
  int first;
  int second;
  int weight;
};

std::vector<Tap> Taps(int from, int to) {
  std::vector<Tap> taps(static_cast<size_t>(to));
  const double ratio = static_cast<double>(from) / to;
  for (int i = 0; i < to; ++i) {
    // Centre of the target pixel in source pixels, counted from centres.
    const double at = std::clamp((i + 0.5) * ratio - 0.5, 0.0, from - 1.0);
    const int first = static_cast<int>(at);
    taps[static_cast<size_t>(i)] = {
        first, std::min(first + 1, from - 1),
        static_cast<int>(std::lround((at - first) * 256))};
  }
  return taps;
}

void FillRow(uint8_t* row, int pixels, Color color) {
  for (int x = 0; x < pixels; ++x) {
    row[0] = color.r;
    row[1] = color.g;
    row[2] = color.b;
    row += 3;
  }
}

// The part of [from, to) on an axis of `size` pixels.
struct Range {
  int from, to;
};

Range Clip(float from, float to, int size) {
  // NaN and infinities of a broken detector end up as an empty range.
  const auto edge = [size](float value) {
    return value > 0 ? static_cast<int>(std::lround(
                           std::min(value, static_cast<float>(size))))
                     : 0;
  };
  return {edge(from), edge(to)};
}

}  // namespace

Image::Image(int width, int height)
    : width_(width),
      height_(height),
      bytes_(static_cast<size_t>(width) * static_cast<size_t>(height) * 3) {}

Pixels Image::pixels() {
  return {bytes_.data(), width_, height_, static_cast<size_t>(width_) * 3};
}

ConstPixels Image::pixels() const {
  return {bytes_.data(), width_, height_, static_cast<size_t>(width_) * 3};
}

void Resize(ConstPixels from, Pixels to) {
  if (from.width <= 0 || from.height <= 0) return;
  if (to.width <= 0 || to.height <= 0) return;
  const std::vector<Tap> columns = Taps(from.width, to.width);
  const std::vector<Tap> rows = Taps(from.height, to.height);
  for (int y = 0; y < to.height; ++y) {
    const Tap& row = rows[static_cast<size_t>(y)];
    const uint8_t* upper =
        from.data + static_cast<size_t>(row.first) * from.stride;
    const uint8_t* lower =
        from.data + static_cast<size_t>(row.second) * from.stride;
    uint8_t* out = to.data + static_cast<size_t>(y) * to.stride;
    for (const Tap& column : columns) {
      const size_t left = static_cast<size_t>(column.first) * 3;
      const size_t right = static_cast<size_t>(column.second) * 3;
      for (size_t c = 0; c < 3; ++c) {
        const int above = upper[left + c] * (256 - column.weight) +
                          upper[right + c] * column.weight;
        const int below = lower[left + c] * (256 - column.weight) +
                          lower[right + c] * column.weight;
        const int sum = above * (256 - row.weight) + below * row.weight;
        *out++ = static_cast<uint8_t>((sum + (1 << 15)) >> 16);
      }
    }
  }
}

Box Letterbox::ToOriginal(const Box& box) const {
  const auto x = static_cast<float>(left);
  const auto y = static_cast<float>(top);
  return {(box.left - x) / scale, (box.top - y) / scale,
          (box.right - x) / scale, (box.bottom - y) / scale};
}

Letterbox ResizeLetterboxed(ConstPixels from, Pixels to, Color pad) {
  if (from.width <= 0 || from.height <= 0) return {1, 0, 0};
  const auto from_width = static_cast<float>(from.width);
  const auto from_height = static_cast<float>(from.height);
  const float scale = std::min(static_cast<float>(to.width) / from_width,
                               static_cast<float>(to.height) / from_height);
  // A very thin picture keeps at least one pixel.
  const int width = std::clamp(
      static_cast<int>(std::lround(from_width * scale)), 1, to.width);
  const int height = std::clamp(
      static_cast<int>(std::lround(from_height * scale)), 1, to.height);
  const int left = (to.width - width) / 2;
  const int top = (to.height - height) / 2;
  for (int y = 0; y < to.height; ++y) {
    uint8_t* row = to.data + static_cast<size_t>(y) * to.stride;
    if (y < top || y >= top + height) {
      FillRow(row, to.width, pad);
      continue;
    }
    FillRow(row, left, pad);
    FillRow(row + static_cast<size_t>(left + width) * 3,
            to.width - left - width, pad);
  }
  Resize(from, {to.data + static_cast<size_t>(top) * to.stride +
                    static_cast<size_t>(left) * 3,
                width, height, to.stride});
  return {scale, left, top};
}

void DrawBox(Pixels image, const Box& box, Color color, int thickness) {
  const Range x = Clip(box.left, box.right, image.width);
  const Range y = Clip(box.top, box.bottom, image.height);
  for (int row = y.from; row < y.to; ++row) {
    uint8_t* line = image.data + static_cast<size_t>(row) * image.stride;
    if (row < y.from + thickness || row >= y.to - thickness) {
      FillRow(line + static_cast<size_t>(x.from) * 3, x.to - x.from, color);
      continue;
    }
    const int edge = std::min(thickness, x.to - x.from);
    FillRow(line + static_cast<size_t>(x.from) * 3, edge, color);
    FillRow(line + static_cast<size_t>(x.to - edge) * 3, edge, color);
  }
}

}  // namespace rknnd::client
