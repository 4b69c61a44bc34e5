#include "driver/soft/kernels/convolution/float_bands.h"

#include <algorithm>
#include <cstring>

#include "driver/soft/kernels/checks.h"
#include "driver/soft/tiles/pixel_rows.h"
#include "driver/soft/tiles/turn_floats.h"

namespace rknnd::soft {
namespace {

constexpr size_t kFloat = sizeof(float);

// Channels that lie together in a pixel of the tensor.
int64_t TogetherIn(const TensorSpec& spec) {
  const bool one_pixel = ProductOf(spec.shape, 2, spec.shape.size()) == 1;
  return one_pixel && spec.placement.block == 1 ? spec.shape[1]
                                                : spec.placement.block;
}

void FillPixels(const FloatLayout& layout, int64_t image, int64_t pixel,
                int64_t count, const float* input, float* to) {
  const int64_t channels = layout.channels;
  const int64_t together = layout.together;
  if (together == channels) {
    std::memcpy(to, input + layout.At(image, 0, pixel),
                static_cast<size_t>(count * channels) * kFloat);
    return;
  }
  if (together == 1) {
    TurnFloats(input + layout.At(image, 0, pixel), layout.pixels, channels,
               count, to, channels);
    return;
  }
  for (int64_t c = 0; c < channels; c += together) {
    const float* from = input + layout.At(image, c, pixel);
    float* pixels = to + c;
    const int64_t valid = std::min(together, channels - c);
    if (valid == 8) {
      for (int64_t p = 0; p < count;
           ++p, from += together, pixels += channels) {
        std::memcpy(pixels, from, 8 * kFloat);
      }
    } else if (valid == 1) {
      for (int64_t p = 0; p < count; ++p, from += together) {
        pixels[p * channels] = *from;
      }
    } else {
      for (int64_t p = 0; p < count; ++p, from += together) {
        std::memcpy(pixels + p * channels, from,
                    static_cast<size_t>(valid) * kFloat);
      }
    }
  }
}

}  // namespace

FloatLayout::FloatLayout(const TensorSpec& spec)
    : channels(spec.shape[1]),
      together(TogetherIn(spec)),
      blocks((channels + together - 1) / together),
      pixels(ProductOf(spec.shape, 2, spec.shape.size())) {}

void FillBand(const TileWindow& window, const Band& band, const BandRows& rows,
              const FloatLayout& layout, const float* input, float* to) {
  const BandRow row = RowOf(window, band);
  ForEachBandRow(window, band, rows, [&](int64_t place, int64_t y) {
    float* const line = to + place * band.row_values();
    if (y < 0) {
      std::fill_n(line, band.row_values(), 0.0F);
      return;
    }
    std::fill_n(line, row.before * window.channels, 0.0F);
    FillPixels(layout, rows.image, y * window.input[2] + row.first, row.inside,
               input, line + row.before * window.channels);
    std::fill_n(line + (row.before + row.inside) * window.channels,
                row.after * window.channels, 0.0F);
  });
}

void FillPlanes(const TileWindow& window, const Band& band,
                const BandRows& rows, const FloatLayout& layout,
                const float* input, float* to) {
  const BandRow row = RowOf(window, band);
  const int64_t plane = RowPlace(window, band, 1, 0);
  for (int64_t c = 0; c < window.channels; c += layout.together) {
    const int64_t channels = std::min(layout.together, window.channels - c);
    ForEachBandRow(window, band, rows, [&](int64_t place, int64_t y) {
      float* const line = to + RowPlace(window, band, c, place);
      const int64_t before = y < 0 ? band.width : row.before;
      for (int64_t p = 0; p < channels; ++p) {
        std::fill_n(line + p * plane, before, 0.0F);
      }
      if (y < 0) return;
      TurnFloats(
          input + layout.At(rows.image, c, y * window.input[2] + row.first),
          layout.together, row.inside, channels, line + before, plane);
      for (int64_t p = 0; p < channels; ++p) {
        std::fill_n(line + p * plane + before + row.inside, row.after, 0.0F);
      }
    });
  }
}

}  // namespace rknnd::soft
