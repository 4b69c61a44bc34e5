// The way from a camera's frame into a model's input: what the camera process
// does itself, straight into the memory that the NPU reads.

#ifndef EXAMPLES_DEMO_LETTERBOXER_H_
#define EXAMPLES_DEMO_LETTERBOXER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "client/image/image.h"
#include "client/include/rknnd.hpp"
#include "examples/detector/frame.h"

namespace rknnd::demo {

// What the elements of a model's input mean: (byte - mean) * scale for each of
// the three bytes of a pixel.
struct Normalisation {
  float mean = 0;
  float scale = 1 / 255.0F;
  uint8_t pad = 114;  // around a letterboxed frame
};

// Writes frames of one size into one input of a model: as large as fits with
// the ratio of the sides kept, in the input's own type.
// Thread: any, one at a time.
class Letterboxer {
 public:
  // Throws Error for an input that is no RGB picture in NHWC, or of a type
  // that pictures do not come in.
  Letterboxer(const Tensor& input, int frame_width, int frame_height,
              const Normalisation& normalisation);

  // `frame` has the size given above; `input` the tensor's bytes().
  void Write(const detector::Nv12& frame, void* input);
  // Where the frame lies in the input.
  [[nodiscard]] const client::Letterbox& place() const { return place_; }

 private:
  template <class Element>
  void Place(const std::array<Element, 256>& elements, Element* to) const;

  int width_ = 0, height_ = 0;
  size_t row_ = 0;  // elements from row to row
  int inner_width_ = 0, inner_height_ = 0;
  client::Letterbox place_{};
  uint8_t pad_;
  rknn_tensor_type type_;
  // The element for each byte, in the one that `type_` says.
  std::array<uint8_t, 256> bytes_{};
  std::array<uint16_t, 256> halves_{};
  std::array<float, 256> floats_{};
  detector::Shrinker shrinker_;
  std::vector<uint8_t> rgb_;  // the shrunk frame
};

}  // namespace rknnd::demo

#endif  // EXAMPLES_DEMO_LETTERBOXER_H_
