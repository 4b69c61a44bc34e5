// RowTile's loop of tile_kernels.h, written once: pixels of a row in a vector's
// lanes, so that a layer of one output channel keeps whole vectors busy, too.
// As tile_loops.h, an instance belongs to one file and one level of CPU: all of
// it comes of `V`, which is local to that file and has, beyond what is said
// there,
//   kRowOutputs               output channels at once: a power of two
//   kRowSums                  vectors of sums that the registers hold

#ifndef DRIVER_SOFT_TILES_ROW_LOOPS_H_
#define DRIVER_SOFT_TILES_ROW_LOOPS_H_

#include <cstddef>
#include <cstdint>

#include "driver/soft/tiles/tile_kernels.h"
#include "driver/soft/tiles/tile_loops.h"

namespace rknnd::soft {

template <class V>
struct RowLoops {
  using Loops = TileLoops<V>;
  using Floats = typename Loops::Floats;
  static constexpr size_t kLanes = V::kLanes;

  // `kVectors` vectors of pixels, of which `valid` pixels are stored, for
  // `kOutputs` output channels, of which `outputs` are.
  template <size_t kOutputs, size_t kVectors>
  static void Multiply(const RowTile& tile, const TileEpilogue& epilogue,
                       size_t output, size_t outputs, size_t pixel) {
    typename V::Sum sums[kOutputs][kVectors];
#pragma GCC unroll 16
    for (size_t o = 0; o < kOutputs; ++o) {
#pragma GCC unroll 16
      for (size_t v = 0; v < kVectors; ++v) sums[o][v] = V::Zero();
    }
    const std::byte* const pixels = tile.pixels + pixel * sizeof(float);
    const std::byte* weights = tile.weights + output * sizeof(float);
    for (size_t tap = 0; tap < tile.taps; ++tap) {
      const std::byte* const from = pixels + tile.offsets[tap];
      typename V::Weights x[kVectors];
#pragma GCC unroll 16
      for (size_t v = 0; v < kVectors; ++v) {
        x[v] = V::LoadWeights(from + v * kLanes * sizeof(float), 0);
      }
#pragma GCC unroll 16
      for (size_t o = 0; o < kOutputs; ++o) {
        const typename V::Values w = V::Broadcast(weights + o * sizeof(float));
#pragma GCC unroll 16
        for (size_t v = 0; v < kVectors; ++v) {
          sums[o][v] = V::Dot(sums[o][v], x[v], w);
        }
      }
      weights += tile.weight_step;
    }
    // By way of memory, as of Tile.
    Floats results[kOutputs][kVectors];
#pragma GCC unroll 16
    for (size_t o = 0; o < kOutputs; ++o) {
#pragma GCC unroll 16
      for (size_t v = 0; v < kVectors; ++v) {
        results[o][v] = V::template Join<Floats>(&sums[o][v]);
      }
    }
    for (size_t o = 0; o < outputs; ++o) {
      typename Loops::Rounding rounding(epilogue, output + o);
      rounding.bias = Floats{} + epilogue.bias[output + o];
      rounding.scale = Floats{} + epilogue.scale[output + o];
      std::byte* to =
          tile.output + (output + o) * tile.output_step + pixel * sizeof(float);
      for (size_t v = 0; v < kVectors; ++v, to += kLanes * sizeof(float)) {
        Loops::Store(rounding.Steps(results[o][v]),
                     tile.count - pixel - v * kLanes, to);
      }
    }
  }

  // All pixels.
  template <size_t kOutputs>
  static void MultiplyAll(const RowTile& tile, const TileEpilogue& epilogue,
                          size_t output, size_t outputs) {
    constexpr size_t kFit = V::kRowSums / kOutputs;
    constexpr size_t kMost = kFit < 8 ? kFit : 8;
    size_t pixel = 0;
    // The last vector may be partly filled.
    const auto run = [&]<size_t kVectors>() {
      while (pixel + (kVectors - 1) * kLanes < tile.count) {
        Multiply<kOutputs, kVectors>(tile, epilogue, output, outputs, pixel);
        pixel += kVectors * kLanes;
      }
    };
    run.template operator()<kMost>();
    if constexpr (kMost > 4) run.template operator()<4>();
    if constexpr (kMost > 2) run.template operator()<2>();
    run.template operator()<1>();
  }

  static void Run(const RowTile& tile, const TileEpilogue& epilogue) {
    static_assert(V::kRowOutputs == 4 || V::kRowOutputs == 8);
    for (size_t output = 0; output < tile.outputs;) {
      const size_t left = tile.outputs - output;
      if (left > 4 && V::kRowOutputs == 8) {
        const size_t own = left < 8 ? left : 8;
        MultiplyAll<V::kRowOutputs>(tile, epilogue, output, own);
        output += own;
      } else if (left > 2) {
        const size_t own = left < 4 ? left : 4;
        MultiplyAll<4>(tile, epilogue, output, own);
        output += own;
      } else if (left == 2) {
        MultiplyAll<2>(tile, epilogue, output, 2);
        output += 2;
      } else {
        MultiplyAll<1>(tile, epilogue, output, 1);
        output += 1;
      }
    }
  }
};

// All functions of a level.
template <class V>
constexpr FloatKernels FloatKernelsOf(const char* name) {
  return {name, V::kLanes, TileLoops<V>::RunTile, TileLoops<V>::Depthwise,
          RowLoops<V>::Run};
}

}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_TILES_ROW_LOOPS_H_
