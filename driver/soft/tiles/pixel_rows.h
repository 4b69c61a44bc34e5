// Layers of few output channels, computed with pixels of a row in a vector's
// lanes (RowTile of tile_kernels.h): which layers, and how their weights and
// their band lie. The band has the rows of one input channel after the other,
// not the channels of a pixel together.
//
// Thread: any.

#ifndef DRIVER_SOFT_TILES_PIXEL_ROWS_H_
#define DRIVER_SOFT_TILES_PIXEL_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "driver/soft/tiles/window.h"

namespace rknnd::soft {

// Whether rows of pixels fill vectors better than output channels do.
bool SuitsRows(const TileWindow& window);

// Where the band has row `row` (of all depths) of an input channel, in values.
inline int64_t RowPlace(const TileWindow& window, const Band& band,
                        int64_t channel, int64_t row) {
  return (channel * window.kernel[0] * band.rows + row) * band.width;
}

// The taps of a window from its corner, in values: input channels, in each the
// kernel's positions from the outermost axis in.
std::vector<ptrdiff_t> RowTaps(const TileWindow& window, const Band& band);

// Weights, tap by tap: those of all output channels, and zeros up to a power of
// two. Of windows that suit.
int64_t RowOutputs(const TileWindow& window);
// `weights`: output channels, input channels, kernel positions. `to` has room
// for RowOutputs() floats of each tap, all zero.
void PackRows(const TileWindow& window, std::span<const float> weights,
              float* to);

}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_TILES_PIXEL_ROWS_H_
