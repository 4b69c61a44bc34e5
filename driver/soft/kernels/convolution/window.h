// The sliding window of convolutions and poolings: kernel, strides, dilations
// and padding as a node gives them, checked.
//
// Thread: the loading thread.

#ifndef DRIVER_SOFT_KERNELS_CONVOLUTION_WINDOW_H_
#define DRIVER_SOFT_KERNELS_CONVOLUTION_WINDOW_H_

#include <cstdint>
#include <span>

#include "absl/status/statusor.h"
#include "driver/soft/kernels/operator.h"

namespace rknnd::soft {

struct Window {
  Shape kernel, strides, dilations, pads_begin, pads_end;
  Shape output;  // spatial sizes of the output
  bool ceil_mode = false;

  [[nodiscard]] size_t rank() const { return kernel.size(); }
  // From the first to the last element of one position of the kernel.
  [[nodiscard]] int64_t Extent(size_t axis) const {
    return (kernel[axis] - 1) * dilations[axis] + 1;
  }
};

// `input`: N, C, then the spatial sizes. `kernel`: its spatial sizes, already
// known to be positive, or empty: the attribute kernel_shape says.
absl::StatusOr<Window> ParseWindow(const NodeView& node, const Shape& input,
                                   std::span<const int64_t> kernel);

}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_KERNELS_CONVOLUTION_WINDOW_H_
