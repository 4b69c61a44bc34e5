// See painter.h.

#include "examples/detector/painter.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

namespace rknnd::detector {
namespace {

// The first pixel whose centre is not left of (above) `edge`.
int FirstPixel(double edge, int limit) {
  return static_cast<int>(
      std::clamp(std::ceil(edge - 0.5), 0.0, static_cast<double>(limit)));
}

}  // namespace

void Extent::Include(double x, double y) {
  left = std::min(left, x);
  right = std::max(right, x);
  top = std::min(top, y);
  bottom = std::max(bottom, y);
}

double Extent::Area() const {
  return std::max(0.0, right - left) * std::max(0.0, bottom - top);
}

Extent Extent::ClippedTo(double width, double height) const {
  return {std::max(left, 0.0), std::max(top, 0.0), std::min(right, width),
          std::min(bottom, height)};
}

Painter::Painter(const Nv12& frame, const Light& light)
    : frame_(frame), light_(light), scale_(frame.height) {}

double Painter::width() const { return frame_.width / scale_; }

Yuv Painter::Shade(const Rgb& color, double x) const {
  const double share = std::clamp(x / width(), 0.0, 1.0);
  const double side = light_.left + (light_.right - light_.left) * share;
  const Rgb lit = {color.r * light_.gain.r * side,
                   color.g * light_.gain.g * side,
                   color.b * light_.gain.b * side};
  const Rgb seen = lit.Mixed(light_.haze, haze_);
  return ToYuv(seen.r, seen.g, seen.b);
}

void Painter::Span(int row, double left, double right, const Yuv& color) const {
  const int first = FirstPixel(left, frame_.width);
  const int last = FirstPixel(right, frame_.width);
  if (first >= last) return;
  std::memset(frame_.luma + static_cast<size_t>(row) * frame_.stride + first,
              color.y, static_cast<size_t>(last - first));
  if (row % 2 != 0) return;
  uint8_t* pairs = frame_.chroma + static_cast<size_t>(row / 2) * frame_.stride;
  for (int i = first / 2; i < (last + 1) / 2; ++i) {
    pairs[2 * i] = color.u;
    pairs[2 * i + 1] = color.v;
  }
}

void Painter::Ellipse(Point centre, double rx, double ry, const Rgb& color) {
  extent_.Include(centre.x - rx, centre.y - ry);
  extent_.Include(centre.x + rx, centre.y + ry);
  const Yuv shade = Shade(color, centre.x);
  const double x = centre.x * scale_, y = centre.y * scale_;
  const double a = rx * scale_, b = ry * scale_;
  const int last = FirstPixel(y + b, frame_.height);
  for (int row = FirstPixel(y - b, frame_.height); row < last; ++row) {
    const double d = (row + 0.5 - y) / b;
    const double half = a * std::sqrt(std::max(0.0, 1 - d * d));
    Span(row, x - half, x + half, shade);
  }
}

void Painter::Rectangle(double left, double top, double right, double bottom,
                        const Rgb& color) {
  const std::array<Point, 4> corners = {
      {{left, top}, {right, top}, {right, bottom}, {left, bottom}}};
  Polygon(corners, color);
}

void Painter::Polygon(std::span<const Point> corners, const Rgb& color) {
  Extent own;
  for (const Point& p : corners) own.Include(p.x, p.y);
  extent_.Include(own.left, own.top);
  extent_.Include(own.right, own.bottom);
  const Yuv shade = Shade(color, (own.left + own.right) / 2);
  const int last = FirstPixel(own.bottom * scale_, frame_.height);
  for (int row = FirstPixel(own.top * scale_, frame_.height); row < last;
       ++row) {
    const double y = (row + 0.5) / scale_;
    double left = 1e9, right = -1e9;
    for (size_t i = 0; i < corners.size(); ++i) {
      const Point& p = corners[i];
      const Point& q = corners[(i + 1) % corners.size()];
      if ((p.y <= y) == (q.y <= y)) continue;
      const double x = p.x + (q.x - p.x) * (y - p.y) / (q.y - p.y);
      left = std::min(left, x);
      right = std::max(right, x);
    }
    Span(row, left * scale_, right * scale_, shade);
  }
}

void Painter::Limb(Point from, Point to, double from_radius, double to_radius,
                   const Rgb& color) {
  Ellipse(from, from_radius, from_radius, color);
  Ellipse(to, to_radius, to_radius, color);
  const double dx = to.x - from.x, dy = to.y - from.y;
  const double length = std::sqrt(dx * dx + dy * dy);
  if (length < 1e-9) return;
  const double nx = -dy / length, ny = dx / length;
  const std::array<Point, 4> corners = {
      {{from.x + nx * from_radius, from.y + ny * from_radius},
       {to.x + nx * to_radius, to.y + ny * to_radius},
       {to.x - nx * to_radius, to.y - ny * to_radius},
       {from.x - nx * from_radius, from.y - ny * from_radius}}};
  Polygon(corners, color);
}

void Painter::Gradient(double top, double bottom, const Rgb& from,
                       const Rgb& to) {
  const int first = FirstPixel(top * scale_, frame_.height);
  const int last = FirstPixel(bottom * scale_, frame_.height);
  // Pieces of the width, so that light from one side shows.
  constexpr int kPieces = 16;
  for (int row = first; row < last; ++row) {
    const double share = (row - first) / static_cast<double>(last - first);
    const Rgb color = from.Mixed(to, share);
    for (int i = 0; i < kPieces; ++i) {
      const double left = width() * i / kPieces;
      const double right = width() * (i + 1) / kPieces;
      Span(row, left * scale_, right * scale_,
           Shade(color, (left + right) / 2));
    }
  }
}

void Painter::Shadow(Point centre, double rx, double ry, double share) {
  const auto keep = static_cast<int>(256 * (1 - share));
  const double x = centre.x * scale_, y = centre.y * scale_;
  const double a = rx * scale_, b = ry * scale_;
  const int last = FirstPixel(y + b, frame_.height);
  for (int row = FirstPixel(y - b, frame_.height); row < last; ++row) {
    const double d = (row + 0.5 - y) / b;
    const double half = a * std::sqrt(std::max(0.0, 1 - d * d));
    uint8_t* luma = frame_.luma + static_cast<size_t>(row) * frame_.stride;
    const int end = FirstPixel(x + half, frame_.width);
    for (int i = FirstPixel(x - half, frame_.width); i < end; ++i) {
      luma[i] = static_cast<uint8_t>(16 + (((luma[i] - 16) * keep) >> 8));
    }
  }
}

Extent Painter::TakeExtent() {
  const Extent taken = extent_;
  extent_ = Extent();
  return taken;
}

}  // namespace rknnd::detector
