// See backdrop.h.

#include "examples/detector/backdrop.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

namespace rknnd::detector {
namespace {

Rgb Grey(Random& random, double from, double to, double spread) {
  const double tone = random.Uniform(from, to);
  return {tone + random.Uniform(-spread, spread),
          tone + random.Uniform(-spread, spread),
          tone + random.Uniform(-spread, spread)};
}

}  // namespace

Backdrop::Backdrop(Random& random)
    : seed_(random.Next()),
      indoors_(random.Chance(0.2)),
      night_(!indoors_ && random.Chance(0.2)),
      horizon_(random.Uniform(0.2, 0.45)),
      haze_(random.Chance(0.3) ? random.Uniform(0.1, 0.5) : 0) {
  const double gain =
      night_ ? random.Uniform(0.3, 0.55) : random.Uniform(0.65, 1.2);
  light_.gain = {gain * random.Uniform(0.9, 1.1),
                 gain * random.Uniform(0.93, 1.05),
                 gain * random.Uniform(0.85, 1.15)};
  light_.left = random.Uniform(0.75, 1.1);
  light_.right = random.Uniform(0.75, 1.1);
  const double haze = (night_ ? 60 : 190) + random.Uniform(-20, 20);
  light_.haze = {haze, haze, haze + 8};
  road_top_ = horizon_ + random.Uniform(0.1, 0.22);
  road_bottom_ = road_top_ + random.Uniform(0.15, 0.3);
}

double Backdrop::HazeAt(double y) const {
  return haze_ * std::clamp((1 - y) / (1 - horizon_), 0.0, 1.0);
}

void Backdrop::Draw(const Nv12& frame) const {
  Random random(seed_);
  Painter painter(frame, light_);
  if (indoors_) {
    DrawHall(painter, random);
  } else {
    DrawSky(painter, random);
    DrawBuildings(painter, random);
    DrawGround(painter, random);
  }
  AddTexture(frame, random);
}

void Backdrop::DrawSky(Painter& painter, Random& random) const {
  const Rgb zenith = {random.Uniform(60, 170), random.Uniform(110, 190),
                      random.Uniform(170, 240)};
  const Rgb low = zenith.Mixed({240, 230, 215}, random.Uniform(0.2, 0.9));
  const double dim = night_ ? 0.35 : 1;
  painter.Gradient(0, horizon_, zenith.Times(dim), low.Times(dim));
  for (int i = random.Integer(0, 5); i > 0; --i) {
    const Point centre = {random.Uniform(0, painter.width()),
                          random.Uniform(0, 0.7 * horizon_)};
    const double size = random.Uniform(0.02, 0.08);
    const Rgb cloud = Grey(random, 170, 250, 5).Times(dim);
    for (int k = -2; k <= 2; ++k) {
      painter.Ellipse({centre.x + k * size, centre.y}, 1.2 * size,
                      size * (0.6 - 0.12 * std::abs(k)), cloud);
    }
  }
}

void Backdrop::DrawBuildings(Painter& painter, Random& random) const {
  painter.set_haze(haze_);
  const bool city = random.Chance(0.65);
  for (double x = -0.1; x < painter.width();) {
    const double width = random.Uniform(0.12, 0.5);
    const double top = horizon_ - random.Uniform(0.02, city ? 0.4 : 0.1);
    const double base = horizon_ + 0.01;
    if (city && random.Chance(0.85)) {
      const Rgb wall = Grey(random, 60, 210, 30);
      painter.Rectangle(x, top, x + width, base, wall);
      const Rgb glass = random.Chance(night_ ? 0.6 : 0.1)
                            ? Rgb{400, 360, 240}
                            : Grey(random, 40, 160, 20);
      const double step = random.Uniform(0.025, 0.06);
      for (double wy = top + step / 2; wy < base - step; wy += 1.4 * step) {
        for (double wx = x + step / 2; wx < x + width - step;
             wx += 1.3 * step) {
          if (random.Chance(0.12)) continue;
          painter.Rectangle(wx, wy, wx + 0.7 * step, wy + step, glass);
        }
      }
    } else {
      const Rgb leaves = {random.Uniform(30, 110), random.Uniform(70, 140),
                          random.Uniform(30, 80)};
      painter.Ellipse({x + width / 2, base}, 0.7 * width, base - top, leaves);
    }
    x += width * random.Uniform(0.8, 1.5);
  }
  painter.set_haze(0);
}

void Backdrop::DrawGround(Painter& painter, Random& random) const {
  const Rgb far = random.Chance(0.5)
                      ? Grey(random, 90, 190, 12)
                      : Rgb{random.Uniform(60, 140), random.Uniform(90, 150),
                            random.Uniform(40, 90)};
  painter.Gradient(horizon_, 1, far.Mixed(light_.haze, haze_ / 2),
                   far.Times(random.Uniform(0.75, 1.15)));
  // Slabs, or mown stripes.
  if (random.Chance(0.5)) {
    const Rgb line = far.Times(random.Uniform(0.8, 0.95));
    for (double y = horizon_ + 0.03; y < 1; y += 0.25 * (y - horizon_)) {
      painter.Rectangle(0, y, painter.width(), y + 0.03 * (y - horizon_), line);
    }
    const double vanishing = random.Uniform(0.3, 1.4);
    for (int i = -8; i <= 8; ++i) {
      const double x = vanishing + i * 0.45;
      const std::array<Point, 3> seam = {
          {{vanishing + i * 0.02, horizon_}, {x + 0.008, 1}, {x - 0.008, 1}}};
      painter.Polygon(seam, line);
    }
  }
  if (!random.Chance(0.85)) return;
  const Rgb road = Grey(random, 55, 120, 6);
  painter.Gradient(road_top_, road_bottom_, road.Times(1.05), road);
  const Rgb kerb = Grey(random, 130, 200, 5);
  painter.Rectangle(0, road_top_ - 0.008, painter.width(), road_top_, kerb);
  painter.Rectangle(0, road_bottom_, painter.width(), road_bottom_ + 0.014,
                    kerb);
  const double middle = road_top_ + 0.45 * (road_bottom_ - road_top_);
  for (double x = random.Uniform(-0.2, 0); x < painter.width(); x += 0.22) {
    painter.Rectangle(x, middle - 0.004, x + 0.12, middle + 0.004,
                      {225, 222, 210});
  }
  if (random.Chance(0.3)) {  // a crossing
    const double x = random.Uniform(0.2, painter.width() - 0.4);
    for (int i = 0; i < 5; ++i) {
      const double left = x + i * 0.05;
      painter.Rectangle(left, road_top_ + 0.02, left + 0.025,
                        road_bottom_ - 0.02, {225, 225, 220});
    }
  }
}

void Backdrop::DrawHall(Painter& painter, Random& random) const {
  const Rgb wall = Grey(random, 100, 235, 25);
  painter.Gradient(0, horizon_, wall, wall.Times(random.Uniform(0.8, 1)));
  for (int i = random.Integer(2, 7); i > 0; --i) {  // doors, pictures, shelves
    const double x = random.Uniform(0, painter.width());
    const double width = random.Uniform(0.06, 0.3);
    const bool door = random.Chance(0.4);
    const double bottom = door ? horizon_ : random.Uniform(0.1, horizon_);
    const double top = bottom - random.Uniform(0.08, 0.3);
    painter.Rectangle(x, top, x + width, bottom, Grey(random, 30, 220, 50));
    painter.Rectangle(x + 0.1 * width, top + 0.015, x + 0.9 * width,
                      bottom - 0.015, Grey(random, 30, 230, 50));
  }
  const Rgb floor = Grey(random, 70, 200, 25);
  painter.Gradient(horizon_, 1, floor.Times(0.9), floor.Times(1.08));
  const double tile = random.Uniform(0.1, 0.3);
  const bool chequered = random.Chance(0.3);
  for (double y = horizon_ + 0.02; y < 1 && chequered; y *= 1 + tile) {
    for (int i = 0; i < 12; i += 2) {
      const double x = painter.width() * i / 12;
      painter.Rectangle(x, y, x + painter.width() / 12, y * (1 + tile / 2),
                        floor.Times(0.8));
    }
  }
  for (int i = random.Integer(0, 4); i > 0; --i) {  // lamps
    painter.Ellipse({random.Uniform(0, painter.width()), 0.02}, 0.08, 0.015,
                    {290, 290, 280});
  }
}

void Backdrop::AddTexture(const Nv12& frame, Random& random) const {
  // Blotches in two sizes, the same at every size of the frame.
  struct Layer {
    int rows;
    double strength;
  };
  const std::array<Layer, 2> layers = {
      {{45, random.Uniform(0, 9)}, {180, random.Uniform(0, 11)}}};
  for (const Layer& layer : layers) {
    const int columns = layer.rows * 16 / 9 + 2;
    std::vector<int8_t> values(static_cast<size_t>(columns) *
                               static_cast<size_t>(layer.rows + 1));
    for (int8_t& v : values) {
      v = static_cast<int8_t>(random.Uniform(-1, 1) * layer.strength);
    }
    for (int y = 0; y < frame.height; ++y) {
      const int8_t* row =
          values.data() + static_cast<size_t>(y * layer.rows / frame.height) *
                              static_cast<size_t>(columns);
      uint8_t* luma = frame.luma + static_cast<size_t>(y) * frame.stride;
      for (int x = 0; x < frame.width; ++x) {
        const int column = x * layer.rows / frame.height;
        luma[x] = static_cast<uint8_t>(
            std::clamp(luma[x] + row[std::min(column, columns - 1)], 16, 235));
      }
    }
  }
}

}  // namespace rknnd::detector
