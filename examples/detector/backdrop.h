// What a scene has behind everything that moves: a street, a square, a field or
// a hall, and the light over it. Made and drawn by Scene.

#ifndef EXAMPLES_DETECTOR_BACKDROP_H_
#define EXAMPLES_DETECTOR_BACKDROP_H_

#include "examples/detector/frame.h"
#include "examples/detector/painter.h"
#include "examples/detector/random.h"

namespace rknnd::detector {

// Immutable once made. Thread: any.
class Backdrop {
 public:
  explicit Backdrop(Random& random);

  [[nodiscard]] const Light& light() const { return light_; }
  [[nodiscard]] bool indoors() const { return indoors_; }
  [[nodiscard]] bool night() const { return night_; }
  // Where the ground ends, and where vehicles drive.
  [[nodiscard]] double horizon() const { return horizon_; }
  [[nodiscard]] double road_top() const { return road_top_; }
  [[nodiscard]] double road_bottom() const { return road_bottom_; }
  // Share of the haze over what stands at `y`.
  [[nodiscard]] double HazeAt(double y) const;

  // Fills a frame of any size.
  void Draw(const Nv12& frame) const;

 private:
  void DrawSky(Painter& painter, Random& random) const;
  void DrawBuildings(Painter& painter, Random& random) const;
  void DrawGround(Painter& painter, Random& random) const;
  void DrawHall(Painter& painter, Random& random) const;
  void AddTexture(const Nv12& frame, Random& random) const;

  uint64_t seed_;
  Light light_;
  bool indoors_, night_;
  double horizon_, road_top_, road_bottom_, haze_;
};

}  // namespace rknnd::detector

#endif  // EXAMPLES_DETECTOR_BACKDROP_H_
