// Boxes out of an SSD head's answer: the candidates that are sure enough, the
// surest of each heap.

#ifndef EXAMPLES_DEMO_DETECTION_H_
#define EXAMPLES_DEMO_DETECTION_H_

#include <cstddef>
#include <span>
#include <vector>

namespace rknnd::demo {

struct Detection {
  float left = 0, top = 0, right = 0, bottom = 0;  // shares of the picture
  float score = 0;
};

// `scores` holds (background, face) per candidate, `boxes` (left, top, right,
// bottom).
std::vector<Detection> Decode(std::span<const float> scores,
                              std::span<const float> boxes);

}  // namespace rknnd::demo

#endif  // EXAMPLES_DEMO_DETECTION_H_
