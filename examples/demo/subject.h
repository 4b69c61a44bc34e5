// What the cameras film, and how their detector's answer about it is read.

#ifndef EXAMPLES_DEMO_SUBJECT_H_
#define EXAMPLES_DEMO_SUBJECT_H_

#include <memory>
#include <string>
#include <vector>

#include "base/values/expected.h"
#include "client/image/image.h"
#include "examples/demo/letterboxer.h"
#include "examples/detector/frame.h"

namespace rknnd::demo {

struct Finding {
  client::Box box;  // in pixels of the model's input
  client::Color color;
  float score = 0;
};

// Thread: any, one at a time; Find any.
class Subject {
 public:
  virtual ~Subject() = default;
  // What the camera sees `seconds` after the film's begin.
  virtual void Draw(double seconds, const detector::Nv12& frame) = 0;
  [[nodiscard]] virtual Normalisation normalisation() const = 0;
  // `outputs` as the model has them, for an input of width x height.
  [[nodiscard]] virtual std::vector<Finding> Find(
      const std::vector<std::vector<float>>& outputs, int width,
      int height) const = 0;
};

// A drawn place with people and vehicles, the same for the same seed: what the
// demo's own detector was trained on.
std::unique_ptr<Subject> FilmStreet(uint64_t seed, int width, int height);

// Faces in a photo that a camera holds not quite still.
base::Expected<std::unique_ptr<Subject>> FilmPhoto(const std::string& photo,
                                                   int camera);

}  // namespace rknnd::demo

#endif  // EXAMPLES_DEMO_SUBJECT_H_
