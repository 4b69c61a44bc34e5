// The rows of an input of floats as a convolution reads them: as a band (see
// tiles/window.h), with the padding around them.

#ifndef DRIVER_SOFT_KERNELS_CONVOLUTION_FLOAT_BANDS_H_
#define DRIVER_SOFT_KERNELS_CONVOLUTION_FLOAT_BANDS_H_

#include <cstdint>

#include "driver/soft/kernels/operator.h"
#include "driver/soft/tiles/window.h"

namespace rknnd::soft {

// How a tensor of floats lies: blocks of channels, each pixel by pixel.
struct FloatLayout {
  int64_t channels = 0, together = 1, blocks = 0, pixels = 0;

  explicit FloatLayout(const TensorSpec& spec);
  // Of a channel that begins a block, or with one channel to a block any.
  [[nodiscard]] int64_t At(int64_t image, int64_t channel,
                           int64_t pixel) const {
    return ((image * blocks + channel / together) * pixels + pixel) * together +
           channel % together;
  }
};

// Each pixel with all of its channels.
void FillBand(const TileWindow& window, const Band& band, const BandRows& rows,
              const FloatLayout& layout, const float* input, float* to);
// The rows of each channel apart.
void FillPlanes(const TileWindow& window, const Band& band,
                const BandRows& rows, const FloatLayout& layout,
                const float* input, float* to);

}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_KERNELS_CONVOLUTION_FLOAT_BANDS_H_
