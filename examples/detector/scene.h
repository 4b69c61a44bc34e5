// What the demo's cameras film: a drawn place through which people and vehicles
// move. The same scene trains the detector and tests it, so it exists once.
// Used by the demo's cameras, by rknnd-scene (which feeds the trainer) and by
// the detector's test, each on one thread.

#ifndef EXAMPLES_DETECTOR_SCENE_H_
#define EXAMPLES_DETECTOR_SCENE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "examples/detector/frame.h"

namespace rknnd::detector {

// The number of a class in the detector's answer.
enum class Kind : uint8_t { kPerson = 0, kVehicle = 1 };
inline constexpr int kKinds = 2;

// Corners as shares of the frame's width and height.
struct Box {
  float left = 0, top = 0, right = 0, bottom = 0;
};

// One that can be seen: at least two fifths of it lie in the frame and are not
// hidden.
struct Figure {
  Kind kind;
  Box box;
};

// A place and what moves there: the same for the same seed on every machine,
// and at every size but for rounding. Thread: any, one at a time.
class Scene {
 public:
  // Draws the place once, at the size of the frames to come.
  Scene(uint64_t seed, int width, int height);
  ~Scene();
  Scene(const Scene&) = delete;
  Scene& operator=(const Scene&) = delete;

  // Fills `frame` (of the size given at first) with what is seen `seconds`
  // after the start, which may be any time. Returns what a detector should
  // find.
  std::vector<Figure> Draw(double seconds, const Nv12& frame);

 private:
  struct Content;
  std::unique_ptr<Content> content_;
};

}  // namespace rknnd::detector

#endif  // EXAMPLES_DETECTOR_SCENE_H_
