// A camera's frame as cameras give it, and what a network sees of it. Called by
// the demo, the detector's trainer and its test, on any thread. The caller
// vouches for the memory.

#ifndef EXAMPLES_DETECTOR_FRAME_H_
#define EXAMPLES_DETECTOR_FRAME_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace rknnd::detector {

// NV12: a plane of luma, below it a plane of chroma pairs (U, V), one for two
// by two pixels. BT.601 with luma from 16 to 235. Both planes have rows
// `stride` bytes apart; width and height are even.
struct Nv12 {
  uint8_t* luma = nullptr;
  uint8_t* chroma = nullptr;
  int width = 0;
  int height = 0;
  size_t stride = 0;
};

// A frame whose planes lie one behind the other in `memory`, without gaps.
Nv12 Nv12In(uint8_t* memory, int width, int height);
constexpr size_t Nv12Bytes(int width, int height) {
  return static_cast<size_t>(width) * static_cast<size_t>(height) * 3 / 2;
}

struct Yuv {
  uint8_t y, u, v;
};

// Channels from 0 to 255; what lies outside is cut off.
Yuv ToYuv(double r, double g, double b);

// Averages the pixels of a frame into width x height RGB pixels, three bytes
// each, rows without gaps: how a frame reaches the detector. The frame is at
// least twice as large on both sides. Keeps its row sums between calls; one
// thread at a time.
class Shrinker {
 public:
  void ToRgb(const Nv12& frame, int width, int height, uint8_t* rgb);

 private:
  std::vector<uint16_t> luma_, chroma_;
};

// The frame at its own size as RGB, for pictures to look at.
void ToRgb(const Nv12& frame, uint8_t* rgb);

}  // namespace rknnd::detector

#endif  // EXAMPLES_DETECTOR_FRAME_H_
