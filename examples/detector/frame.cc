// See frame.h.

#include "examples/detector/frame.h"

#include <algorithm>
#include <cmath>

namespace rknnd::detector {
namespace {

uint8_t Byte(double value) {
  return static_cast<uint8_t>(std::clamp(std::lround(value), 0L, 255L));
}

uint8_t Byte(int value) {
  return static_cast<uint8_t>(std::clamp(value, 0, 255));
}

// BT.601 in 1/256ths.
void PutRgb(int y, int u, int v, uint8_t* rgb) {
  const int luma = 298 * (y - 16) + 128;
  u -= 128;
  v -= 128;
  rgb[0] = Byte((luma + 409 * v) >> 8);
  rgb[1] = Byte((luma - 100 * u - 208 * v) >> 8);
  rgb[2] = Byte((luma + 516 * u) >> 8);
}

// Where the share `i` of `parts` of `length` starts.
int Cut(int i, int parts, int length) {
  return static_cast<int>(static_cast<int64_t>(i) * length / parts);
}

// Adds up rows [first, last): at most 257 of them, so that 16 bits hold a sum.
void SumRows(const uint8_t* plane, size_t stride, int first, int last,
             size_t bytes, uint16_t* sums) {
  std::fill_n(sums, bytes, uint16_t{0});
  for (int row = first; row < last; ++row) {
    const uint8_t* from = plane + static_cast<size_t>(row) * stride;
    for (size_t i = 0; i < bytes; ++i) {
      sums[i] = static_cast<uint16_t>(sums[i] + from[i]);
    }
  }
}

}  // namespace

Nv12 Nv12In(uint8_t* memory, int width, int height) {
  const auto row = static_cast<size_t>(width);
  return {memory, memory + row * static_cast<size_t>(height), width, height,
          row};
}

Yuv ToYuv(double r, double g, double b) {
  r = std::clamp(r, 0.0, 255.0);
  g = std::clamp(g, 0.0, 255.0);
  b = std::clamp(b, 0.0, 255.0);
  return {Byte(16 + 0.2568 * r + 0.5041 * g + 0.0979 * b),
          Byte(128 - 0.1482 * r - 0.2910 * g + 0.4392 * b),
          Byte(128 + 0.4392 * r - 0.3678 * g - 0.0714 * b)};
}

void Shrinker::ToRgb(const Nv12& frame, int width, int height, uint8_t* rgb) {
  const auto row_bytes = static_cast<size_t>(frame.width);
  luma_.resize(row_bytes);
  chroma_.resize(row_bytes);
  for (int y = 0; y < height; ++y) {
    const int top = Cut(y, height, frame.height);
    const int bottom = Cut(y + 1, height, frame.height);
    const int chroma_top = Cut(y, height, frame.height / 2);
    const int chroma_bottom = Cut(y + 1, height, frame.height / 2);
    SumRows(frame.luma, frame.stride, top, bottom, row_bytes, luma_.data());
    SumRows(frame.chroma, frame.stride, chroma_top, chroma_bottom, row_bytes,
            chroma_.data());
    for (int x = 0; x < width; ++x, rgb += 3) {
      const int left = Cut(x, width, frame.width);
      const int right = Cut(x + 1, width, frame.width);
      const int chroma_left = Cut(x, width, frame.width / 2);
      const int chroma_right = Cut(x + 1, width, frame.width / 2);
      int luma = 0, u = 0, v = 0;
      for (int i = left; i < right; ++i) luma += luma_[static_cast<size_t>(i)];
      for (int i = chroma_left; i < chroma_right; ++i) {
        u += chroma_[static_cast<size_t>(2 * i)];
        v += chroma_[static_cast<size_t>(2 * i + 1)];
      }
      const int pixels = (right - left) * (bottom - top);
      const int pairs =
          (chroma_right - chroma_left) * (chroma_bottom - chroma_top);
      PutRgb((luma + pixels / 2) / pixels, (u + pairs / 2) / pairs,
             (v + pairs / 2) / pairs, rgb);
    }
  }
}

void ToRgb(const Nv12& frame, uint8_t* rgb) {
  for (int y = 0; y < frame.height; ++y) {
    const uint8_t* luma = frame.luma + static_cast<size_t>(y) * frame.stride;
    const uint8_t* chroma =
        frame.chroma + static_cast<size_t>(y / 2) * frame.stride;
    for (int x = 0; x < frame.width; ++x, rgb += 3) {
      const uint8_t* pair = chroma + x / 2 * 2;
      PutRgb(luma[x], pair[0], pair[1], rgb);
    }
  }
}

}  // namespace rknnd::detector
