// How the I/O layers walk client memory, run by run, and turn its elements into
// floats and back. The memory is hostile (io_transfer.h).
//
// Thread: worker. Allocates nothing.

#ifndef DRIVER_SOFT_PLAN_TRANSFER_WALK_H_
#define DRIVER_SOFT_PLAN_TRANSFER_WALK_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "driver/soft/kernels/operator.h"
#include "driver/soft/kernels/work.h"
#include "driver/soft/plan/io_port.h"
#include "driver/tensor.h"

namespace rknnd::soft {

// Floats that are converted and re-laid out while they are in the first-level
// cache.
inline constexpr int64_t kTransferBatch = 4096;
// Largest C2 of any SoC.
inline constexpr int64_t kMaxGroup = 16;

// Elements of client memory, which need not be aligned.
template <class T>
T Load(const std::byte* from, int64_t i) {
  T value;
  std::memcpy(&value, from + i * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return value;
}
template <class T>
void Store(std::byte* to, int64_t i, T value) {
  std::memcpy(to + i * static_cast<int64_t>(sizeof(T)), &value, sizeof(T));
}

// `count` elements of client memory as floats, and back (FP32 or FP16).
void ToFloat(driver::TensorType type, const std::byte* from, int64_t count,
             float* to);
void FromFloat(driver::TensorType type, const float* from, int64_t count,
               std::byte* to);

// Where the channels [first, ...) of one pixel lie in the tensor inside.
struct Inside {
  int64_t channels, blocks, pixels, block;

  Inside(const TensorSpec& spec, const ClientLayout& layout)
      : channels(layout.channels),
        blocks(1),
        pixels(layout.height * layout.width),
        block(spec.placement.block) {
    blocks = (channels + block - 1) / block;
  }
  [[nodiscard]] int64_t At(int64_t n, int64_t channel, int64_t pixel) const {
    if (block == 1) return (n * channels + channel) * pixels + pixel;
    return ((n * blocks + channel / block) * pixels + pixel) * block +
           channel % block;
  }
};

// Calls f(n, first channel, channels there, first pixel, pixels, offset in
// client memory) for the part's share of runs of pixels of at most
// kTransferBatch floats.
template <class F>
void ForEachRun(const ClientLayout& layout, Part part, F&& f) {
  // Rows without padding between them are one long row.
  bool merged = layout.row == layout.width * layout.pitch;
  int64_t rows = merged ? 1 : layout.height;
  int64_t width = merged ? layout.height * layout.width : layout.width;
  int64_t run = std::max<int64_t>(kTransferBatch / layout.pitch, 1);
  const int64_t groups = (layout.channels + layout.group - 1) / layout.group;
  const Range share =
      ShareOf(part, layout.batch * groups * rows * ((width + run - 1) / run));
  int64_t number = 0;
  for (int64_t n = 0; n < layout.batch; ++n) {
    for (int64_t c = 0; c < layout.channels; c += layout.group) {
      int64_t there = std::min(layout.group, layout.channels - c);
      int64_t base = n * layout.item + c / layout.group * layout.plane;
      for (int64_t h = 0; h < rows; ++h) {
        for (int64_t w = 0; w < width; w += run, ++number) {
          if (number < share.begin || number >= share.end) continue;
          int64_t count = std::min(run, width - w);
          f(n, c, there, h * layout.width + w, count,
            base + h * layout.row + w * layout.pitch);
        }
      }
    }
  }
}

}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_PLAN_TRANSFER_WALK_H_
