// See figures.h.

#include <array>
#include <cmath>

#include "examples/detector/figures.h"

namespace rknnd::detector {
namespace {

constexpr Rgb kTyre = {28, 28, 30}, kHub = {150, 152, 156};
constexpr Rgb kLamp = {255, 250, 215}, kTail = {205, 25, 25};

Rgb Paint(Random& random) {
  if (random.Chance(0.45)) {  // as most are: white, silver, grey, black
    const double grey = random.Uniform(20, 245);
    return {grey, grey, grey + random.Uniform(-8, 8)};
  }
  return {random.Uniform(10, 240), random.Uniform(10, 240),
          random.Uniform(10, 240)};
}

}  // namespace

Vehicle::Vehicle(Random& random, double scale, bool night)
    : kind_(Kind::kCar),
      frontal_(random.Chance(0.25)),
      lights_(night || random.Chance(0.2)),
      length_(random.Uniform(4.0, 4.9)),
      height_(random.Uniform(1.35, 1.6)),
      width_(random.Uniform(1.7, 1.9)),
      speed_(random.Uniform(2.5, 9) * (random.Chance(0.5) ? 1 : -1)),
      body_(Paint(random)),
      second_(Paint(random)),
      glass_(Rgb{60, 75, 90}.Times(random.Uniform(0.4, 2.2))) {
  const double kind = random.Uniform(0, 1);
  // At most 1.3 frame heights long.
  const bool long_ones = scale * 11 < 1.3;
  if (kind < 0.25) {
    kind_ = Kind::kHatchback;
    length_ -= 0.5;
    height_ += 0.1;
  } else if (kind < 0.4) {
    kind_ = Kind::kVan;
    length_ += 0.6;
    height_ = random.Uniform(1.9, 2.5);
  } else if (kind < 0.5) {
    kind_ = Kind::kPickup;
    length_ += 0.5;
    height_ += 0.25;
  } else if (kind < 0.62 && long_ones) {
    kind_ = Kind::kBus;
    length_ = random.Uniform(8.5, 11);
    height_ = random.Uniform(2.8, 3.2);
    width_ = 2.5;
  } else if (kind < 0.74 && long_ones) {
    kind_ = Kind::kTruck;
    length_ = random.Uniform(6, 8.5);
    height_ = random.Uniform(2.6, 3.3);
    width_ = 2.4;
  }
  if (frontal_) speed_ *= 0.06;
}

void Vehicle::Draw(Painter& painter, Point foot, double scale,
                   double seconds) const {
  const double half = (frontal_ ? width_ : length_) * scale / 2;
  painter.Shadow(foot, 1.05 * half, 0.12 * scale, 0.5);
  painter.TakeExtent();
  if (frontal_) {
    DrawEnd(painter, foot, scale);
  } else {
    DrawSide(painter, foot, scale, seconds);
  }
}

void Vehicle::DrawWheel(Painter& painter, Point hub, double radius,
                        double angle) const {
  painter.Ellipse(hub, radius, radius, kTyre);
  painter.Ellipse(hub, 0.6 * radius, 0.6 * radius, kHub);
  for (int i = 0; i < 3; ++i) {
    const double a = angle + i * 1.0472;
    const Point tip = {std::cos(a) * 0.55 * radius,
                       std::sin(a) * 0.55 * radius};
    painter.Limb({hub.x - tip.x, hub.y - tip.y}, {hub.x + tip.x, hub.y + tip.y},
                 0.07 * radius, 0.07 * radius, kTyre);
  }
}

void Vehicle::DrawSide(Painter& painter, Point foot, double scale,
                       double seconds) const {
  const double direction = speed_ < 0 ? -1 : 1;
  // From metres forward of the middle and above the ground to the frame.
  const auto at = [&](double x, double y) {
    return Point{foot.x + direction * x * scale, foot.y - y * scale};
  };
  const auto shape = [&](std::initializer_list<Point> metres,
                         const Rgb& color) {
    std::array<Point, 8> corners;
    size_t count = 0;
    for (const Point& p : metres) corners.at(count++) = at(p.x, p.y);
    painter.Polygon({corners.data(), count}, color);
  };
  const double front = length_ / 2, back = -front, top = height_;
  const bool large = kind_ == Kind::kBus || kind_ == Kind::kTruck;
  const double wheel = large ? 0.46 : 0.33;
  const double sill = wheel * 0.75, waist = large ? 1.35 : 0.62 * top;

  switch (kind_) {
    case Kind::kCar:
    case Kind::kHatchback: {
      const double tail = kind_ == Kind::kCar ? back + 0.85 : back + 0.1;
      shape({{tail, waist},
             {tail + 0.5, top},
             {front - 2.1, top},
             {front - 1.2, waist}},
            body_.Times(0.95));
      shape({{tail + 0.22, waist},
             {tail + 0.58, top - 0.1},
             {front - 2.15, top - 0.1},
             {front - 1.4, waist}},
            glass_);
      shape({{back, sill},
             {back, waist - 0.08},
             {back + 0.25, waist},
             {front - 1.2, waist},
             {front - 0.1, waist - 0.22},
             {front, sill}},
            body_);
      shape({{front - 2.05, waist},
             {front - 2.05, top - 0.05},
             {front - 1.97, top - 0.05},
             {front - 1.97, waist}},
            body_);
      break;
    }
    case Kind::kPickup:
      shape({{back, sill},
             {back, waist},
             {front - 1.2, waist},
             {front, waist - 0.15},
             {front, sill}},
            body_);
      shape({{-0.3, waist}, {-0.2, top}, {1.0, top}, {1.45, waist}}, body_);
      shape({{-0.15, waist},
             {-0.08, top - 0.12},
             {0.95, top - 0.12},
             {1.25, waist}},
            glass_);
      break;
    case Kind::kVan:
      shape({{back, sill},
             {back, top},
             {front - 1.3, top},
             {front - 0.5, waist},
             {front, waist - 0.15},
             {front, sill}},
            body_);
      shape({{front - 2.1, waist},
             {front - 2.1, top - 0.2},
             {front - 1.35, top - 0.2},
             {front - 0.7, waist}},
            glass_);
      shape({{back, 0.42 * top},
             {back, 0.47 * top},
             {front - 0.3, 0.47 * top},
             {front - 0.3, 0.42 * top}},
            second_);
      break;
    case Kind::kBus:
      shape({{back, sill},
             {back, top},
             {front - 0.15, top},
             {front, waist},
             {front, sill}},
            body_);
      shape(
          {{back, sill}, {back, 0.3 * top}, {front, 0.3 * top}, {front, sill}},
          second_);
      for (double x = back + 0.4; x < front - 1.4; x += 1.25) {
        shape({{x, waist},
               {x, top - 0.45},
               {x + 1.05, top - 0.45},
               {x + 1.05, waist}},
              glass_);
      }
      shape({{front - 1, 0.5},
             {front - 1, top - 0.45},
             {front - 0.12, top - 0.45},
             {front - 0.05, waist},
             {front - 0.05, 0.5}},
            glass_.Times(1.2));
      break;
    case Kind::kTruck:
      shape({{back, 0.9}, {back, top}, {front - 2.0, top}, {front - 2.0, 0.9}},
            second_);
      shape({{back, sill}, {back, 0.9}, {front - 1, 0.9}, {front - 1, sill}},
            kTyre);
      shape({{front - 1.85, sill},
             {front - 1.85, 0.85 * top},
             {front - 0.5, 0.85 * top},
             {front, waist},
             {front, sill}},
            body_);
      shape({{front - 1.3, waist},
             {front - 1.3, 0.78 * top},
             {front - 0.55, 0.78 * top},
             {front - 0.15, waist}},
            glass_);
      break;
  }
  const double angle = seconds * speed_ / wheel;
  DrawWheel(painter, at(front - 0.85, wheel), wheel * scale, angle);
  DrawWheel(painter, at(back + 0.85, wheel), wheel * scale, angle);
  painter.Ellipse(at(front - 0.08, 0.5 * waist + 0.15), 0.08 * scale,
                  0.09 * scale, lights_ ? kLamp : kHub);
  painter.Ellipse(at(back + 0.07, 0.5 * waist + 0.2), 0.06 * scale, 0.1 * scale,
                  kTail);
}

void Vehicle::DrawEnd(Painter& painter, Point foot, double scale) const {
  const bool front = speed_ > 0;
  const double half = width_ * scale / 2, top = foot.y - height_ * scale;
  const double waist = foot.y - 0.6 * height_ * scale;
  const double sill = foot.y - 0.22 * scale;
  const bool tall = height_ > 1.85;
  for (const double side : {-1.0, 1.0}) {
    const double x = foot.x + side * 0.8 * half;
    painter.Rectangle(x - 0.12 * scale, foot.y - 0.5 * scale, x + 0.12 * scale,
                      foot.y, kTyre);
  }
  const double roof = (tall ? 0.95 : 0.72) * half;
  const std::array<Point, 4> cabin = {{{foot.x - half, waist},
                                       {foot.x - roof, top},
                                       {foot.x + roof, top},
                                       {foot.x + half, waist}}};
  painter.Polygon(cabin, body_.Times(0.95));
  const double lintel = top + 0.12 * (waist - top);
  const std::array<Point, 4> screen = {{{foot.x - 0.88 * half, waist},
                                        {foot.x - 0.9 * roof, lintel},
                                        {foot.x + 0.9 * roof, lintel},
                                        {foot.x + 0.88 * half, waist}}};
  painter.Polygon(screen, glass_);
  painter.Rectangle(foot.x - half, waist, foot.x + half, sill, body_);
  painter.Rectangle(foot.x - 0.5 * half, sill - 0.35 * (sill - waist),
                    foot.x + 0.5 * half, sill - 0.1 * (sill - waist),
                    front ? kTyre : second_);
  for (const double side : {-1.0, 1.0}) {
    painter.Ellipse(
        {foot.x + side * 0.78 * half, waist + 0.35 * (sill - waist)},
        0.14 * scale, 0.1 * scale,
        !front ? kTail : (lights_ ? kLamp : kHub.Times(1.3)));
  }
}

}  // namespace rknnd::detector
