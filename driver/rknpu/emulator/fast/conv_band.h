// A convolution's map as the loops read it: planes of atoms with the border
// written out, and in a spread map what lies between its pixels. Part of the
// fast engine; one object serves task after task.

#ifndef DRIVER_RKNPU_EMULATOR_FAST_CONV_BAND_H_
#define DRIVER_RKNPU_EMULATOR_FAST_CONV_BAND_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "driver/rknpu/emulator/access.h"
#include "driver/rknpu/emulator/kernels/kernels.h"
#include "driver/rknpu/emulator/specs.h"

namespace rknnd::rknpu::fast {

class ConvBand {
 public:
  // False: not for the fast engine, or the task ends.
  bool Fill(const ConvSpec& spec, Form form, const Kernels& kernels,
            Access& access);

  // The window of output pixel (x, y), and where its taps are from there.
  [[nodiscard]] const std::byte* Window(uint32_t y, uint32_t x) const {
    return values_.data() +
           (size_t{y} * stride_y_ * width_ + size_t{x} * stride_x_) * atom_;
  }
  [[nodiscard]] ptrdiff_t OffsetOf(uint32_t tap_y, uint32_t tap_x,
                                   uint32_t surface) const {
    return static_cast<ptrdiff_t>(surface * plane_ +
                                  (size_t{tap_y} * width_ + tap_x) * atom_);
  }
  // Of every window, for output pixels in order.
  const std::vector<int32_t>& WindowSums(const ConvSpec& spec,
                                         const Kernels& kernels);

 private:
  void FillLine(const ConvSpec& spec, const std::byte* from, std::byte* to);

  std::vector<std::byte> values_, pad_line_, line_;
  std::vector<int16_t> partial_;
  std::vector<int32_t> pixel_sums_, line_sums_, window_sums_;
  const Kernels* kernels_ = nullptr;
  size_t atom_ = 0, plane_ = 0;  // bytes
  uint32_t width_ = 0, height_ = 0, surfaces_ = 0;
  uint32_t stride_x_ = 1, stride_y_ = 1;
};

}  // namespace rknnd::rknpu::fast

#endif  // DRIVER_RKNPU_EMULATOR_FAST_CONV_BAND_H_
