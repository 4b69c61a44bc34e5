// The loops of winograd.h, written once, as those of tile_loops.h are and with
// the same vector types `V`, of int16, which have two functions more:
//   LoadWide(at, s)   weights of sum s of a group, four int16 of each channel
//                     from `at` on
//   WidenHalves(at)   int16 of 2 * kLanes int8

#ifndef DRIVER_SOFT_TILES_WINOGRAD_LOOPS_H_
#define DRIVER_SOFT_TILES_WINOGRAD_LOOPS_H_

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "driver/soft/tiles/tile_loops.h"
#include "driver/soft/tiles/winograd.h"

namespace rknnd::soft {

// Vectors of 16 and 32 bits that wrap, for so many channels of results.
template <size_t kLanes>
struct WrappingOf;
template <>
struct WrappingOf<4> {
  using Halves [[gnu::vector_size(16)]] = uint16_t;
  using Words [[gnu::vector_size(16)]] = uint32_t;
};
template <>
struct WrappingOf<8> {
  using Halves [[gnu::vector_size(32)]] = uint16_t;
  using Words [[gnu::vector_size(32)]] = uint32_t;
};
template <>
struct WrappingOf<16> {
  using Halves [[gnu::vector_size(64)]] = uint16_t;
  using Words [[gnu::vector_size(64)]] = uint32_t;
};

template <class V>
struct WinogradLoops {
  static constexpr size_t kLanes = V::kLanes, kHalves = V::kLanes * 2;
  static constexpr size_t kInputs = 6, kTaps = 3;
  static constexpr size_t kSide = kWinogradSide;
  using Loops = TileLoops<V>;
  using Halves = typename WrappingOf<kLanes>::Halves;
  using Words = typename WrappingOf<kLanes>::Words;
  using Ints = typename Loops::Ints;

  // One axis of each: `step` vectors from one to the next.
  static void InputAxis(const Halves (&x)[kInputs], Halves* to, size_t step) {
    const Halves a = x[4] - (x[2] << 2), b = x[3] - (x[1] << 2);
    const Halves c = x[4] - x[2], d = (x[3] - x[1]) << 1;
    to[0] = (x[0] << 2) - (x[2] << 2) + c;
    to[step] = a + b;
    to[2 * step] = a - b;
    to[3 * step] = c + d;
    to[4 * step] = c - d;
    to[5 * step] = (x[1] << 2) - (x[3] << 2) + x[5] - x[3];
  }
  static void WeightAxis(const Halves (&w)[kTaps], Halves* to, size_t step) {
    const Halves ends = w[0] + w[2], outer = w[0] + (w[2] << 2);
    to[0] = w[0];
    to[step] = ends + w[1];
    to[2 * step] = ends - w[1];
    to[3 * step] = outer + (w[1] << 1);
    to[4 * step] = outer - (w[1] << 1);
    to[5 * step] = w[2];
  }
  static void OutputAxis(const Words (&m)[kInputs], Words* to, size_t step) {
    const Words p = m[1] + m[2], q = (m[1] - m[2]) << 2;
    const Words r = m[3] + m[4], s = (m[3] - m[4]) << 1;
    to[0] = m[0] * 6 - (p << 2) + r;
    to[step] = s - q;
    to[2 * step] = (r - p) << 2;
    to[3 * step] = (s << 2) - q + m[5] * 24;
  }

  static void Input(const std::byte* corner, size_t pixel, size_t row,
                    size_t channels, int32_t zero, int16_t* to, size_t plane) {
    const Halves zeros = Halves{} + static_cast<uint16_t>(zero);
    for (size_t c = 0; c < channels; c += kHalves) {
      const std::byte* from = corner + c * sizeof(int16_t);
      Halves columns[kInputs][kInputs];  // transformed down, by row
      for (size_t x = 0; x < kInputs; ++x, from += pixel) {
        Halves values[kInputs];
#pragma GCC unroll 6
        for (size_t y = 0; y < kInputs; ++y) {
          values[y] = Loops::template Load<Halves>(from + y * row) - zeros;
        }
        InputAxis(values, &columns[0][x], kInputs);
      }
      int16_t* out = to + c;
      for (size_t y = 0; y < kInputs; ++y) {
        Halves values[kInputs];
        InputAxis(columns[y], values, 1);
#pragma GCC unroll 6
        for (size_t x = 0; x < kInputs; ++x, out += plane) {
          std::memcpy(out, &values[x], sizeof values[x]);
        }
      }
    }
  }

  static void Weights(const std::byte* from, size_t count, int16_t* to,
                      size_t plane) {
    for (size_t i = 0; i < count; i += kHalves) {
      Halves columns[kInputs][kTaps];
      for (size_t x = 0; x < kTaps; ++x) {
        Halves values[kTaps];
#pragma GCC unroll 3
        for (size_t y = 0; y < kTaps; ++y) {
          values[y] = V::template WidenHalves<Halves>(
              from + (y * kTaps + x) * count + i);
        }
        WeightAxis(values, &columns[0][x], kTaps);
      }
      int16_t* out = to + i;
      for (size_t y = 0; y < kInputs; ++y) {
        Halves values[kInputs];
        WeightAxis(columns[y], values, 1);
#pragma GCC unroll 6
        for (size_t x = 0; x < kInputs; ++x, out += plane) {
          std::memcpy(out, &values[x], sizeof values[x]);
        }
      }
    }
  }

  template <size_t kTiles>
  static void MultiplyTiles(const int16_t* values, size_t value_step,
                            const int16_t* weights, size_t weight_step,
                            size_t cells, int32_t* sums) {
    constexpr size_t kCell = 4;
    typename V::Sum all[kTiles][V::kSums];
#pragma GCC unroll 16
    for (size_t t = 0; t < kTiles; ++t) {
#pragma GCC unroll 16
      for (size_t s = 0; s < V::kSums; ++s) all[t][s] = V::Zero();
    }
    for (size_t cell = 0; cell < cells; ++cell) {
      typename V::Weights w[V::kSums];
#pragma GCC unroll 16
      for (size_t s = 0; s < V::kSums; ++s) w[s] = V::LoadWide(weights, s);
#pragma GCC unroll 16
      for (size_t t = 0; t < kTiles; ++t) {
        const typename V::Values x = V::Broadcast(
            reinterpret_cast<const std::byte*>(values + t * value_step));
#pragma GCC unroll 16
        for (size_t s = 0; s < V::kSums; ++s) {
          all[t][s] = V::Dot(all[t][s], w[s], x);
        }
      }
      values += kCell;
      weights += weight_step;
    }
#pragma GCC unroll 16
    for (size_t t = 0; t < kTiles; ++t) {
      const Ints joined = V::template Join<Ints>(all[t]);
      std::memcpy(sums + t * kChannelBlock, &joined, sizeof joined);
    }
  }

  static void Multiply(const int16_t* values, size_t value_step, size_t tiles,
                       const int16_t* weights, size_t weight_step, size_t cells,
                       size_t channels, int32_t* sums) {
    for (size_t c = 0; c < channels; c += kLanes) {
      const int16_t* const w = weights + c * kWeightCell;
      size_t t = 0;
      const auto next = [&]<size_t kTiles>() {
        MultiplyTiles<kTiles>(values + t * value_step, value_step, w,
                              weight_step, cells, sums + t * kChannelBlock + c);
        t += kTiles;
      };
      while (t + V::kPixels <= tiles) next.template operator()<V::kPixels>();
      if (((tiles - t) & 4) != 0) next.template operator()<4>();
      if (((tiles - t) & 2) != 0) next.template operator()<2>();
      if (((tiles - t) & 1) != 0) next.template operator()<1>();
    }
  }

  static void Output(const int32_t* sums, size_t plane,
                     const TileEpilogue& epilogue, size_t channels, size_t rows,
                     size_t columns, std::byte* to, size_t pixel, size_t row) {
    constexpr uint32_t kInverse = 0x38E38E39;  // of 9, modulo 2^32
    for (size_t c = 0; c < channels; c += kLanes) {
      Words down[kSide][kInputs];
      for (size_t x = 0; x < kInputs; ++x) {
        Words values[kInputs];
#pragma GCC unroll 6
        for (size_t y = 0; y < kInputs; ++y) {
          values[y] =
              Loops::template Load<Words>(sums + (y * kInputs + x) * plane + c);
        }
        OutputAxis(values, &down[0][x], kInputs);
      }
      std::byte* out = to;
      for (size_t y = 0; y < rows; ++y, out += row) {
        Words values[kSide];
        OutputAxis(down[y], values, 1);
        Ints results[kSide];
#pragma GCC unroll 4
        for (size_t x = 0; x < kSide; ++x) {
          results[x] = reinterpret_cast<Ints>(values[x] * kInverse) >> 6;
        }
        if (columns == kSide) {
          Loops::template FinishPixels<kSide>(epilogue, results, c,
                                              channels - c, out, pixel);
          continue;
        }
        for (size_t x = 0; x < columns; ++x) {
          Loops::template FinishPixels<1>(epilogue, &results[x], c,
                                          channels - c, out + x * pixel, pixel);
        }
      }
    }
  }

  static constexpr WinogradKernels kKernels = {Input, Weights, Multiply,
                                               Output};
};

}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_TILES_WINOGRAD_LOOPS_H_
