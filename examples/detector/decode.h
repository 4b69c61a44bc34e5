// Detections out of the network's answer. Used by the demo and the detector's
// test, on any thread; no state.

#ifndef EXAMPLES_DETECTOR_DECODE_H_
#define EXAMPLES_DETECTOR_DECODE_H_

#include <vector>

#include "examples/detector/scene.h"

namespace rknnd::detector {

// Of the network's input; train.py has the same numbers.
inline constexpr int kInputWidth = 256, kInputHeight = 144;

struct Detection {
  Kind kind;
  Box box;
  float score = 0;  // 0 to 1
};

// `outputs` are the four of detector.onnx in its order, as floats, channels
// first: scores (one channel per kind) and boxes of the fine grid (a cell per 8
// pixels), then those of the coarse one (16). Claims below `least` are dropped,
// and so are those that overlap a surer one of their kind; the surest is first.
// Nothing for outputs of other sizes.
std::vector<Detection> Decode(const std::vector<std::vector<float>>& outputs,
                              float least = 0.4F);

// Intersection over union.
float Overlap(const Box& a, const Box& b);

}  // namespace rknnd::detector

#endif  // EXAMPLES_DETECTOR_DECODE_H_
