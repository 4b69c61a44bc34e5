// See figures.h.

#include <array>
#include <cmath>

#include "examples/detector/figures.h"

namespace rknnd::detector {

Prop::Prop(Random& random)
    : kind_(static_cast<Kind>(random.Integer(0, 6))),
      height_(1),
      width_(1),
      lean_(random.Uniform(-0.15, 0.15)) {
  const double tone = random.Uniform(40, 200);
  color_ = {tone + random.Uniform(-40, 40), tone + random.Uniform(-40, 40),
            tone + random.Uniform(-40, 40)};
  second_ = {random.Uniform(30, 220), random.Uniform(30, 220),
             random.Uniform(30, 220)};
  const Rgb leaf = {random.Uniform(20, 120), random.Uniform(70, 150),
                    random.Uniform(15, 70)};
  switch (kind_) {
    case Kind::kPost:
      height_ = random.Uniform(2, 5);
      width_ = random.Uniform(0.08, 0.2);
      break;
    case Kind::kTree:
      height_ = random.Uniform(2.5, 6);
      width_ = random.Uniform(0.2, 0.45);
      color_ = Rgb{110, 80, 55}.Times(random.Uniform(0.4, 1.2));
      second_ = leaf;
      break;
    case Kind::kBush:
      height_ = random.Uniform(0.5, 1.3);
      width_ = random.Uniform(0.8, 3);
      second_ = leaf;
      break;
    case Kind::kBin:
      height_ = random.Uniform(0.7, 1.2);
      width_ = random.Uniform(0.4, 0.7);
      break;
    case Kind::kSign:
      height_ = random.Uniform(1.8, 2.8);
      width_ = random.Uniform(0.4, 0.9);
      break;
    case Kind::kFence:
      height_ = random.Uniform(0.7, 1.2);
      width_ = random.Uniform(2, 5);
      break;
    case Kind::kBox:
      height_ = random.Uniform(0.5, 2.2);
      width_ = random.Uniform(0.5, 2.5);
      break;
  }
}

void Prop::Draw(Painter& painter, Point foot, double scale) const {
  const double h = height_ * scale, w = width_ * scale;
  const double top = foot.y - h, left = foot.x - w / 2, right = foot.x + w / 2;
  painter.Shadow(foot, 0.6 * w, 0.05 * scale, 0.35);
  switch (kind_) {
    case Kind::kPost:
      painter.Rectangle(left, top, right, foot.y, color_);
      painter.Ellipse({foot.x + lean_ * scale, top}, 0.3 * scale, 0.1 * scale,
                      second_);
      break;
    case Kind::kTree:
      painter.Limb(foot, {foot.x + lean_ * h, top + 0.2 * h}, w / 2, w / 4,
                   color_);
      for (int i = 0; i < 5; ++i) {
        const double a = i * 1.2566 + lean_ * 10;
        painter.Ellipse({foot.x + lean_ * h + std::cos(a) * 0.14 * h,
                         top + 0.2 * h + std::sin(a) * 0.1 * h},
                        0.17 * h, 0.14 * h, second_.Times(0.75 + 0.1 * i));
      }
      break;
    case Kind::kBush:
      for (int i = 0; i < 4; ++i) {
        painter.Ellipse(
            {left + w * (i + 0.5) / 4, foot.y - h * (i % 2 == 0 ? 0.4 : 0.5)},
            w / 5, h / 2, second_.Times(0.75 + 0.12 * i));
      }
      break;
    case Kind::kBin:
      painter.Rectangle(left, top, right, foot.y, color_);
      painter.Ellipse({foot.x, top}, w / 2, 0.12 * w, second_);
      break;
    case Kind::kSign:
      painter.Rectangle(foot.x - 0.04 * scale, top, foot.x + 0.04 * scale,
                        foot.y, color_);
      if (lean_ > 0) {
        painter.Ellipse({foot.x, top}, w / 2, w / 2, second_);
        painter.Ellipse({foot.x, top}, w / 3, w / 3, color_);
      } else {
        painter.Rectangle(left, top - w / 3, right, top + w / 3, second_);
      }
      break;
    case Kind::kFence: {
      const int bars = static_cast<int>(width_ / 0.35);
      for (int i = 0; i <= bars; ++i) {
        const double x = left + w * i / bars;
        painter.Rectangle(x, top, x + 0.06 * scale, foot.y, color_);
      }
      painter.Rectangle(left, top + 0.1 * h, right, top + 0.2 * h, color_);
      painter.Rectangle(left, top + 0.7 * h, right, top + 0.8 * h, color_);
      break;
    }
    case Kind::kBox:
      painter.Rectangle(left, top, right, foot.y, color_);
      painter.Rectangle(left + 0.15 * w, top + 0.2 * h, right - 0.15 * w,
                        top + 0.55 * h, second_);
      break;
  }
}

Extent Prop::Solid(Point foot, double scale) const {
  const double h = height_ * scale, w = width_ * scale;
  const double half =
      kind_ == Kind::kSign || kind_ == Kind::kFence ? 0.04 * scale : w / 2;
  Extent solid;
  solid.Include(foot.x - half, foot.y - h);
  solid.Include(foot.x + half, foot.y);
  return solid;
}

}  // namespace rknnd::detector
