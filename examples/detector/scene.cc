// See scene.h.

#include "examples/detector/scene.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>

#include "examples/detector/backdrop.h"
#include "examples/detector/figures.h"
#include "examples/detector/painter.h"
#include "examples/detector/random.h"

namespace rknnd::detector {
namespace {

// Below this height (of the frame) nobody is drawn: the detector sees frames of
// 144 rows.
constexpr double kLeastPerson = 0.12;
constexpr double kLargestPerson = 0.62;
// Of a figure that is half hidden so much must be seen to count.
constexpr double kLeastSeen = 0.4;
// Rows of the grain that a cheap sensor adds to a frame.
constexpr int kGrainRows = 270;
constexpr size_t kGrainTable = 1U << 14U;

// Something that stands or moves at a distance from the camera.
struct Thing {
  std::optional<Person> person;
  std::optional<Vehicle> vehicle;
  std::optional<Prop> prop;
  double start = 0;  // x at time 0
  double y = 0;      // of its foot
  double scale = 0;  // frame heights per metre
};

struct Seen {
  Kind kind;
  Extent extent;
  size_t thing;
};

// The share of `extent`'s part in the frame that nearer things leave free,
// times the share of it that is in the frame.
double ShareSeen(const Extent& extent, const std::vector<Extent>& nearer,
                 double width) {
  const Extent inside = extent.ClippedTo(width, 1);
  if (inside.Area() <= 0) return 0;
  constexpr int kGrid = 12;
  int free = 0;
  for (int i = 0; i < kGrid; ++i) {
    for (int k = 0; k < kGrid; ++k) {
      const double x =
          inside.left + (inside.right - inside.left) * (i + 0.5) / kGrid;
      const double y =
          inside.top + (inside.bottom - inside.top) * (k + 0.5) / kGrid;
      const bool hidden =
          std::any_of(nearer.begin(), nearer.end(), [&](const Extent& e) {
            return x > e.left && x < e.right && y > e.top && y < e.bottom;
          });
      free += hidden ? 0 : 1;
    }
  }
  return inside.Area() / extent.Area() * free / (kGrid * kGrid);
}

// A person fills less than its box: what its box hides is its middle.
Extent Core(const Extent& e, double share) {
  const double cut = (e.right - e.left) * (1 - share) / 2;
  return {e.left + cut, e.top, e.right - cut, e.bottom};
}

}  // namespace

struct Scene::Content {
  Random random;
  Backdrop backdrop;
  std::vector<uint8_t> place;  // an NV12 frame
  std::vector<int8_t> grain, grain_row;
  std::vector<uint16_t> grain_columns;  // of each pixel of a row
  std::vector<Thing> things;            // far ones first

  explicit Content(uint64_t seed) : random(seed), backdrop(random) {}

  void Populate(double width);
  void AddGrain(double seconds, const Nv12& frame);
};

void Scene::Content::Populate(double width) {
  // The height of a person at the lower edge of the frame.
  const double nearest = random.Uniform(0.35, kLargestPerson);
  const double per_y = nearest / 1.75 / (1 - backdrop.horizon());
  const auto scale_at = [&](double y) {
    return per_y * (y - backdrop.horizon());
  };
  const double farthest = backdrop.horizon() + kLeastPerson / 1.75 / per_y;
  const auto place_at = [&](double y) {
    Thing thing;
    thing.y = y;
    thing.scale = scale_at(y);
    thing.start = random.Uniform(0, 100);
    return thing;
  };

  for (int i = random.Integer(1, 5); i > 0; --i) {
    Thing thing = place_at(random.Uniform(farthest, 1.02));
    thing.person.emplace(random);
    things.push_back(std::move(thing));
  }
  if (!backdrop.indoors()) {
    const double top = std::max(backdrop.road_top() + 0.02, farthest);
    const double bottom = std::max(backdrop.road_bottom() - 0.01, top + 0.02);
    for (int i = random.Integer(0, 4); i > 0; --i) {
      Thing thing = place_at(random.Uniform(top, bottom));
      thing.vehicle.emplace(random, thing.scale, backdrop.night());
      things.push_back(std::move(thing));
    }
  }
  for (int i = random.Integer(0, 6); i > 0; --i) {
    Thing thing = place_at(random.Uniform(farthest, 1.05));
    thing.start = random.Uniform(0, width);
    thing.prop.emplace(random);
    things.push_back(std::move(thing));
  }
  std::stable_sort(things.begin(), things.end(),
                   [](const Thing& a, const Thing& b) { return a.y < b.y; });

  grain.resize(kGrainTable);
  const double strength = random.Uniform(0, 14);
  for (int8_t& v : grain) {
    v = static_cast<int8_t>(std::lround(
        strength * (random.Uniform(-1, 1) + random.Uniform(-1, 1)) / 2));
  }
}

void Scene::Content::AddGrain(double seconds, const Nv12& frame) {
  // Another pattern in each frame.
  Random lot(static_cast<uint64_t>(std::llround(seconds * 1e6)) ^ 0x5CE4E);
  const auto width = static_cast<size_t>(frame.width);
  grain_row.resize(width);
  int drawn = -1;
  for (int y = 0; y < frame.height; ++y) {
    const int row = y * kGrainRows / frame.height;
    if (row != drawn) {
      drawn = row;
      const size_t offset = lot.Next() % kGrainTable;
      for (size_t x = 0; x < width; ++x) {
        grain_row[x] = grain[(offset + grain_columns[x]) % kGrainTable];
      }
    }
    uint8_t* luma = frame.luma + static_cast<size_t>(y) * frame.stride;
    for (size_t x = 0; x < width; ++x) {
      luma[x] =
          static_cast<uint8_t>(std::clamp(luma[x] + grain_row[x], 0, 255));
    }
  }
}

Scene::Scene(uint64_t seed, int width, int height)
    : content_(std::make_unique<Content>(seed)) {
  content_->place.resize(Nv12Bytes(width, height));
  content_->backdrop.Draw(Nv12In(content_->place.data(), width, height));
  content_->Populate(static_cast<double>(width) / height);
  for (int x = 0; x < width; ++x) {
    content_->grain_columns.push_back(
        static_cast<uint16_t>(x * kGrainRows / height));
  }
}

Scene::~Scene() = default;

std::vector<Figure> Scene::Draw(double seconds, const Nv12& frame) {
  const Nv12 place = Nv12In(content_->place.data(), frame.width, frame.height);
  for (int y = 0; y < frame.height; ++y) {
    std::memcpy(frame.luma + static_cast<size_t>(y) * frame.stride,
                place.luma + static_cast<size_t>(y) * place.stride,
                place.stride);
  }
  for (int y = 0; y < frame.height / 2; ++y) {
    std::memcpy(frame.chroma + static_cast<size_t>(y) * frame.stride,
                place.chroma + static_cast<size_t>(y) * place.stride,
                place.stride);
  }

  Painter painter(frame, content_->backdrop.light());
  const double width = painter.width();
  std::vector<Seen> seen;
  std::vector<Extent> solid;  // of each thing, in the order they are drawn
  for (const Thing& thing : content_->things) {
    painter.set_haze(content_->backdrop.HazeAt(thing.y));
    if (thing.prop) {
      const Point foot = {thing.start, thing.y};
      thing.prop->Draw(painter, foot, thing.scale);
      painter.TakeExtent();
      solid.push_back(thing.prop->Solid(foot, thing.scale));
      continue;
    }
    // Who leaves on one side comes back on the other.
    const double speed =
        thing.person ? thing.person->speed() : thing.vehicle->speed();
    const double margin =
        thing.scale * (thing.person ? 0.6 : thing.vehicle->length() / 2 + 0.3);
    const double round = width + 2 * margin;
    const double x =
        std::fmod(thing.start + speed * thing.scale * seconds, round);
    const Point foot = {(x < 0 ? x + round : x) - margin, thing.y};
    if (thing.person) {
      thing.person->Draw(painter, foot, thing.scale, seconds);
    } else {
      thing.vehicle->Draw(painter, foot, thing.scale, seconds);
    }
    const Extent extent = painter.TakeExtent();
    seen.push_back(
        {thing.person ? Kind::kPerson : Kind::kVehicle, extent, solid.size()});
    solid.push_back(Core(extent, thing.person ? 0.6 : 0.95));
  }
  content_->AddGrain(seconds, frame);

  std::vector<Figure> figures;
  for (const Seen& s : seen) {
    const std::vector<Extent> nearer(
        solid.begin() + static_cast<std::ptrdiff_t>(s.thing) + 1, solid.end());
    if (ShareSeen(s.extent, nearer, width) < kLeastSeen) continue;
    const Extent e = s.extent.ClippedTo(width, 1);
    figures.push_back(
        {s.kind,
         {static_cast<float>(e.left / width), static_cast<float>(e.top),
          static_cast<float>(e.right / width), static_cast<float>(e.bottom)}});
  }
  return figures;
}

}  // namespace rknnd::detector
