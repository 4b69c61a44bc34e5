// Convolutions with windows of 3x3 and strides of 1 by Winograd's method,
// F(4x4, 3x3): four by four outputs take 36 products for each input channel
// instead of 144. Exact: all of it is in integers.
//
//   x: 6x6 pixels, minus their zero point ── B'xB ──▶ 36 places, 16 bits
//   w: 3x3 weights ─────────────────────── G w G' ──▶ 36 places, 16 bits
//   36 products of matrices, summed over the input channels, modulo 2^32
//   ── A' m A ──▶ 4x4 times 576 times the sums, modulo 2^32
//
// The rows of G are multiplied by 4, -6, -6, 24, 24 and 1, so that no fractions
// are left; A makes it up to 24, for both axes 576 = 64 * 9. 9 has an inverse
// modulo 2^32, so a sum within 26 bits is what a shift then leaves of it.
//
// It needs 16 bits by 16: quick where the CPU has no dot product of bytes.
//
// Thread: any. Nothing allocates.

#ifndef DRIVER_SOFT_TILES_WINOGRAD_H_
#define DRIVER_SOFT_TILES_WINOGRAD_H_

#include <cstddef>
#include <cstdint>

#include "driver/soft/tiles/tile_kernels.h"

namespace rknnd::soft {

inline constexpr size_t kWinogradSide = 4;     // outputs of a tile
inline constexpr size_t kWinogradPlaces = 36;  // of a tile, or of the weights
inline constexpr size_t kWinogradTaps = 9;
// Sums are exact below.
inline constexpr int64_t kWinogradSums = int64_t{1} << 25;
// What functions may read or write behind the last value of a plane, in bytes.
inline constexpr size_t kWinogradSlack = 64;

// Steps and planes (from one place to the next) are in values, but for those of
// pixels, which are in bytes. Channels may be read, and planes written, up to a
// multiple of kMaxLanes * 2.
struct WinogradKernels {
  // The 6x6 pixels from `corner` on, of int16, to a value of each channel in
  // each plane.
  void (*input)(const std::byte* corner, size_t pixel, size_t row,
                size_t channels, int32_t zero, int16_t* to,
                size_t plane) = nullptr;
  // `count` weights of each tap, the taps one behind the other.
  void (*weights)(const std::byte* from, size_t count, int16_t* to,
                  size_t plane) = nullptr;
  // The sums of `tiles` tiles at one place, kChannelBlock for each. Weights are
  // by cells of four inputs, four of each channel.
  void (*multiply)(const int16_t* values, size_t value_step, size_t tiles,
                   const int16_t* weights, size_t weight_step, size_t cells,
                   size_t channels, int32_t* sums) = nullptr;
  // The upper left rows and columns of a tile's outputs.
  void (*output)(const int32_t* sums, size_t plane,
                 const TileEpilogue& epilogue, size_t channels, size_t rows,
                 size_t columns, std::byte* to, size_t pixel,
                 size_t row) = nullptr;
};

}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_TILES_WINOGRAD_H_
