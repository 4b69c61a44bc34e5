// A picture as a camera, a decoder or a scaler leaves it in memory: planes,
// strides, a part of interest. A device takes one for an input of a model and
// converts and scales it on the way in, which is counted as a conversion.

#ifndef DRIVER_FRAME_H_
#define DRIVER_FRAME_H_

#include <array>
#include <cstdint>

namespace rknnd::driver {

class Memory;

// Numbers are those of rknnd.h and of the wire.
enum class PixelFormat : uint32_t {
  kNv12 = 1,  // Y, then CbCr of half width and height; BT.601, limited range
  kNv21 = 2,  // the same with CrCb
  kRgb888 = 3,
  kBgr888 = 4,
};

inline constexpr size_t kMaxPlanes = 2;
// Of a frame, each way: above any sensor's, and no product of them overflows.
inline constexpr uint32_t kMaxFrameSide = 16384;

enum class FrameFit : uint32_t {
  kStretch = 0,    // to the input's size, whatever its proportions
  kLetterbox = 1,  // whole and centred, the rest in the pad colour
};

// How the bytes of a frame are to be read: a client's word.
struct FrameFormat {
  PixelFormat pixels = PixelFormat::kNv12;
  uint32_t width = 0, height = 0;             // of the whole frame, pixels
  std::array<uint32_t, kMaxPlanes> stride{};  // bytes from row to row
  // The part of it that is taken; all 0: all of it.
  uint32_t crop_x = 0, crop_y = 0, crop_width = 0, crop_height = 0;
  FrameFit fit = FrameFit::kStretch;
  std::array<uint8_t, 3> pad{};  // of a letterbox, in the input's channel order
  // The input's channels are blue, green, red.
  bool bgr_input = false;

  friend bool operator==(const FrameFormat&, const FrameFormat&) = default;
};

// Bytes from a plane's first to its last; 0: no such plane.
using FrameSizes = std::array<uint64_t, kMaxPlanes>;

struct FramePlane {
  Memory* memory = nullptr;
  uint64_t offset = 0;
};

// One that was accepted (Model::CheckFrame), in memory that holds it.
struct Frame {
  FrameFormat format;
  std::array<FramePlane, kMaxPlanes> planes{};
};

}  // namespace rknnd::driver

#endif  // DRIVER_FRAME_H_
