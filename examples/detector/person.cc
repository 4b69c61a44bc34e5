// See figures.h.

#include <array>
#include <cmath>
#include <numbers>

#include "examples/detector/figures.h"

namespace rknnd::detector {
namespace {

Rgb Clothes(Random& random) {
  // Dark, light or bright; grey is as frequent as anything coloured.
  const double base = random.Uniform(15, 235);
  const double spread = random.Chance(0.5) ? 12 : 110;
  return {base + random.Uniform(-spread, spread),
          base + random.Uniform(-spread, spread),
          base + random.Uniform(-spread, spread)};
}

Point Towards(Point from, double angle, double length, double direction) {
  return {from.x + direction * std::sin(angle) * length,
          from.y + std::cos(angle) * length};
}

}  // namespace

Person::Person(Random& random)
    : height_(random.Uniform(1.5, 1.95)),
      girth_(random.Uniform(0.85, 1.25)),
      speed_(random.Uniform(0.6, 1.9) * (random.Chance(0.5) ? 1 : -1)),
      phase_(random.Uniform(0, 2 * std::numbers::pi)),
      frontal_(random.Chance(0.3)),
      skirt_(random.Chance(0.15)),
      hat_(random.Chance(0.2)),
      bag_(random.Chance(0.25)),
      long_hair_(random.Chance(0.3)) {
  const double tone = random.Uniform(0.28, 1);
  skin_ = Rgb{235, 190, 160}.Times(tone);
  hair_ = Rgb{150, 110, 70}.Times(random.Uniform(0.1, 1.2));
  shirt_ = Clothes(random);
  trousers_ = Clothes(random).Times(random.Uniform(0.4, 1));
  shoes_ = Rgb{60, 50, 45}.Times(random.Uniform(0.3, 3));
  extra_ = Clothes(random);
  if (frontal_) speed_ *= 0.15;
}

void Person::Draw(Painter& painter, Point foot, double scale,
                  double seconds) const {
  const double h = height_ * scale;
  const double direction = speed_ < 0 ? -1 : 1;
  // Two steps of 0.75 m a turn; who comes towards us walks on the spot.
  const double pace = frontal_ ? 1.2 : std::abs(speed_);
  const double turn = phase_ + 2 * std::numbers::pi * seconds * pace / 1.5;
  const double swing = frontal_ ? 0.1 : 0.52;
  const double w = girth_ * h * (frontal_ ? 0.118 : 0.085);

  painter.Shadow({foot.x, foot.y - 0.012 * h}, 0.16 * h, 0.028 * h, 0.45);
  painter.TakeExtent();

  const double bob = 0.012 * h * std::cos(2 * turn);
  const Point hip = {foot.x, foot.y - 0.49 * h + bob};
  const Point neck = {foot.x + direction * (frontal_ ? 0 : 0.02 * h),
                      foot.y - 0.82 * h + bob};

  const auto leg = [&](double side, double darker) {
    const double step = turn + (side > 0 ? 0 : std::numbers::pi);
    const double thigh = swing * std::sin(step);
    const double bend =
        (frontal_ ? 0.25 : 0.75) * std::max(0.0, std::cos(step));
    const Point top = {hip.x + (frontal_ ? side * 0.5 * w : 0), hip.y};
    const Point knee = Towards(top, thigh, 0.235 * h, direction);
    const Point ankle =
        Towards(knee, thigh - bend,
                (frontal_ ? 0.235 - 0.08 * bend : 0.235) * h, direction);
    painter.Limb(top, knee, 0.055 * h * girth_, 0.038 * h,
                 trousers_.Times(darker));
    painter.Limb(knee, ankle, 0.037 * h, 0.026 * h,
                 (skirt_ ? skin_ : trousers_).Times(darker));
    painter.Limb(
        ankle,
        {ankle.x + direction * (frontal_ ? 0 : 0.05 * h), ankle.y + 0.008 * h},
        0.024 * h, 0.018 * h, shoes_.Times(darker));
  };
  const auto arm = [&](double side, double darker) {
    const double angle =
        -0.8 * swing * std::sin(turn + (side > 0 ? 0 : std::numbers::pi));
    const Point shoulder = {neck.x + (frontal_ ? side * 1.05 * w : 0),
                            neck.y + 0.045 * h};
    const Point elbow = {shoulder.x + direction * std::sin(angle) * 0.17 * h +
                             (frontal_ ? side * 0.03 * h : 0),
                         shoulder.y + std::cos(angle) * 0.17 * h};
    const Point hand =
        Towards(elbow, angle + (frontal_ ? 0 : 0.35), 0.16 * h, direction);
    painter.Limb(shoulder, elbow, 0.034 * h, 0.027 * h, shirt_.Times(darker));
    painter.Limb(elbow, hand, 0.026 * h, 0.02 * h,
                 (bag_ ? shirt_ : skin_).Times(darker));
    painter.Ellipse(hand, 0.022 * h, 0.024 * h, skin_.Times(darker));
  };

  arm(-1, 0.75);
  leg(-1, 0.75);
  if (bag_ && !frontal_) {
    painter.Ellipse({neck.x - direction * 1.1 * w, neck.y + 0.13 * h}, 0.06 * h,
                    0.11 * h, extra_);
  }
  leg(1, 1);
  const std::array<Point, 4> trunk = {{{neck.x - w, neck.y + 0.025 * h},
                                       {neck.x + w, neck.y + 0.025 * h},
                                       {hip.x + 0.8 * w, hip.y + 0.03 * h},
                                       {hip.x - 0.8 * w, hip.y + 0.03 * h}}};
  painter.Ellipse({neck.x, neck.y + 0.04 * h}, w, 0.04 * h, shirt_);
  painter.Polygon(trunk, shirt_);
  if (skirt_) {
    const std::array<Point, 4> skirt = {{{hip.x - 0.8 * w, hip.y - 0.02 * h},
                                         {hip.x + 0.8 * w, hip.y - 0.02 * h},
                                         {hip.x + 1.5 * w, hip.y + 0.2 * h},
                                         {hip.x - 1.5 * w, hip.y + 0.2 * h}}};
    painter.Polygon(skirt, trousers_);
  }
  arm(1, 0.92);

  const Point head = {neck.x + direction * (frontal_ ? 0 : 0.01 * h),
                      neck.y - 0.085 * h};
  painter.Limb(neck, head, 0.028 * h, 0.028 * h, skin_.Times(0.85));
  if (long_hair_) {
    painter.Ellipse(
        {head.x - direction * (frontal_ ? 0 : 0.02 * h), head.y + 0.03 * h},
        0.06 * h, 0.085 * h, hair_);
  }
  painter.Ellipse(head, 0.052 * h, 0.07 * h, skin_);
  painter.Ellipse(
      {head.x - direction * (frontal_ ? 0 : 0.012 * h), head.y - 0.03 * h},
      0.054 * h, 0.046 * h, hat_ ? extra_ : hair_);
  if (hat_) {
    painter.Ellipse({head.x + direction * 0.02 * h, head.y - 0.02 * h},
                    0.07 * h, 0.012 * h, extra_.Times(0.8));
  }
}

}  // namespace rknnd::detector
