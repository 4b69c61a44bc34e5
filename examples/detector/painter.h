// Draws shapes into an NV12 frame: what scenes are made of. Positions are in
// frame heights, from the top left corner, so that a scene is the same at every
// size. Shapes may lie outside of the frame.

#ifndef EXAMPLES_DETECTOR_PAINTER_H_
#define EXAMPLES_DETECTOR_PAINTER_H_

#include <span>

#include "examples/detector/frame.h"

namespace rknnd::detector {

struct Rgb {
  double r = 0, g = 0, b = 0;

  [[nodiscard]] Rgb Times(double k) const { return {r * k, g * k, b * k}; }
  [[nodiscard]] Rgb Mixed(const Rgb& other, double share) const {
    return {r + (other.r - r) * share, g + (other.g - g) * share,
            b + (other.b - b) * share};
  }
};

struct Point {
  double x = 0, y = 0;
};

struct Extent {
  double left = 1e9, top = 1e9, right = -1e9, bottom = -1e9;

  void Include(double x, double y);
  [[nodiscard]] double Area() const;
  [[nodiscard]] Extent ClippedTo(double width, double height) const;
};

// How light falls: colours are multiplied by `gain` and `side` (which grows or
// shrinks from left to right), then fade into `haze`.
struct Light {
  Rgb gain = {1, 1, 1};
  double left = 1, right = 1;
  Rgb haze = {200, 205, 210};
};

// Thread: any, one at a time. The frame outlives it.
class Painter {
 public:
  Painter(const Nv12& frame, const Light& light);

  [[nodiscard]] double width() const;  // in frame heights

  // How much of the haze covers what is drawn from now on, 0 to 1.
  void set_haze(double share) { haze_ = share; }

  void Ellipse(Point centre, double rx, double ry, const Rgb& color);
  void Rectangle(double left, double top, double right, double bottom,
                 const Rgb& color);
  // Corners in order, convex.
  void Polygon(std::span<const Point> corners, const Rgb& color);
  // A line with round ends whose width changes.
  void Limb(Point from, Point to, double from_radius, double to_radius,
            const Rgb& color);
  // Rows from `top` to `bottom` over the whole width, one colour into another.
  void Gradient(double top, double bottom, const Rgb& from, const Rgb& to);
  // Darkens what is there: a shadow on the ground.
  void Shadow(Point centre, double rx, double ry, double share);

  // The extent of what was drawn since the last call, without shadows.
  Extent TakeExtent();

 private:
  [[nodiscard]] Yuv Shade(const Rgb& color, double x) const;
  void Span(int row, double left, double right, const Yuv& color) const;

  Nv12 frame_;
  Light light_;
  double scale_;  // pixels per unit
  double haze_ = 0;
  Extent extent_;
};

}  // namespace rknnd::detector

#endif  // EXAMPLES_DETECTOR_PAINTER_H_
