// The loops of tile_kernels.h, written once. Each level of CPU instantiates
// them with its own vector type `V`, in a file that is compiled for that CPU;
// `V` is local to that file, and so is all that comes of it: nothing compiled
// for one CPU can be linked where another is meant. For the same reason nothing
// here is a plain inline function.
//
// V has:
//   kLanes                    channels that one vector of results holds
//   kSums                     vectors of sums that make up one of results
//   kGroups                   vectors of results that a tile has at most
//   kPixels                   pixels of a tile
//   kForm                     TileForm of the activations
//   Sum, Weights, Values      registers
//   Zero()                    a Sum
//   LoadWeights(at, s)        those of sum s of a group that begins at `at`
//   Broadcast(at)             a cell of activations, for all channels
//   Dot(sum, weights, values) the sum with their products
//   Join(sums)                the int32, or floats, of kLanes channels
// and where it is for bytes
//   Widen(at)                 int32 of kLanes int8
//   Narrow(ints)              their lowest bytes (compilers convert such
//   vectors
//                             number by number)

#ifndef DRIVER_SOFT_TILES_TILE_LOOPS_H_
#define DRIVER_SOFT_TILES_TILE_LOOPS_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "driver/soft/tiles/tile_kernels.h"

namespace rknnd::soft {

// Vectors of so many channels, with the compiler's own operators.
template <size_t kLanes>
struct VectorsOf;
template <>
struct VectorsOf<4> {
  using Ints [[gnu::vector_size(16)]] = int32_t;
  using Unsigned [[gnu::vector_size(16)]] = uint32_t;
  using Floats [[gnu::vector_size(16)]] = float;
  using Bytes [[gnu::vector_size(4)]] = int8_t;
};
template <>
struct VectorsOf<8> {
  using Ints [[gnu::vector_size(32)]] = int32_t;
  using Unsigned [[gnu::vector_size(32)]] = uint32_t;
  using Floats [[gnu::vector_size(32)]] = float;
  using Bytes [[gnu::vector_size(8)]] = int8_t;
};
template <>
struct VectorsOf<16> {
  using Ints [[gnu::vector_size(64)]] = int32_t;
  using Unsigned [[gnu::vector_size(64)]] = uint32_t;
  using Floats [[gnu::vector_size(64)]] = float;
  using Bytes [[gnu::vector_size(16)]] = int8_t;
};

template <class V>
struct TileLoops {
  static constexpr size_t kLanes = V::kLanes;
  using Ints = typename VectorsOf<kLanes>::Ints;
  using Unsigned = typename VectorsOf<kLanes>::Unsigned;
  using Floats = typename VectorsOf<kLanes>::Floats;
  using Bytes = typename VectorsOf<kLanes>::Bytes;
  static constexpr bool kIsFloat = V::kForm == TileForm::kFloat;

  template <class T>
  static T Load(const void* at) {
    T value;
    std::memcpy(&value, at, sizeof value);
    return value;
  }
  template <class T>
  static void Store(const T& value, size_t valid, std::byte* to) {
    if (valid >= kLanes) {
      std::memcpy(to, &value, sizeof value);
      return;
    }
    // In pieces of known sizes: a call to memcpy takes longer than the sums.
    const auto* from = reinterpret_cast<const std::byte*>(&value);
    constexpr size_t kEach = sizeof value / kLanes;
    const auto move = [&]<size_t kCount>() {
      if ((valid & kCount) == 0) return;
      std::memcpy(to, from, kCount * kEach);
      to += kCount * kEach;
      from += kCount * kEach;
    };
    move.template operator()<8>();
    move.template operator()<4>();
    move.template operator()<2>();
    move.template operator()<1>();
  }

  // The epilogue of the channels from `channel` on, in registers: what is
  // stored through a std::byte* may be anything, as far as a compiler knows.
  struct Rounding {
    Ints start, zero;
    Floats bias, scale, slope, low, high;
    bool sloped;
    TileOutput output;

    Rounding(const TileEpilogue& epilogue, size_t channel)
        : start(epilogue.start == nullptr
                    ? Ints{}
                    : Load<Ints>(epilogue.start + channel)),
          // Round's constant has this as an integer.
          zero(Ints{} + (epilogue.zero - 0x4B400000)),
          bias(Load<Floats>(epilogue.bias + channel)),
          scale(Load<Floats>(epilogue.scale + channel)),
          slope(Floats{} + epilogue.slope),
          low(Floats{} + epilogue.low),
          high(Floats{} + epilogue.high),
          sloped(epilogue.slope != 1.0F),
          output(epilogue.output) {}

    template <bool kSloped = true>
    [[nodiscard]] Floats Steps(const Floats& sums) const {
      Floats v = (sums + bias) * scale;
      if constexpr (kSloped) v = v < 0.0F ? v * slope : v;
      if constexpr (kIsFloat) {
        // What is not a number stays so; of bytes it becomes the lowest.
        v = v < low ? low : v;
        return v > high ? high : v;
      } else {
        v = v > low ? v : low;
        return v < high ? v : high;
      }
    }
    [[nodiscard]] Bytes Round(const Floats& steps) const {
      if constexpr (kIsFloat) {
        return Bytes{};  // never asked for
      } else {
        // 1.5 * 2^23: adding it rounds, and leaves the integer in the lower
        // bits.
        constexpr float kRound = 12582912.0F;
        return V::template Narrow<Bytes>(
            static_cast<Ints>(reinterpret_cast<Ints>(steps + kRound) + zero));
      }
    }
  };

  // The sums of `kCount` pixels, `T` being Ints or Floats.
  template <size_t kCount, class T>
  static void FinishPixels(const TileEpilogue& epilogue, const T* sums,
                           size_t channel, size_t valid, std::byte* pixel,
                           size_t step) {
    const Rounding rounding(epilogue, channel);
    pixel += channel * SizeOf(rounding.output);
    if (kIsFloat || rounding.output == TileOutput::kFloat) {
      for (size_t p = 0; p < kCount; ++p, pixel += step) {
        Store(rounding.Steps(Real(sums[p], rounding)), valid, pixel);
      }
    } else if (rounding.output == TileOutput::kSum) {
      for (size_t p = 0; p < kCount; ++p, pixel += step) {
        Store(Sum(Whole(sums[p]), rounding.start), valid, pixel);
      }
    } else if (rounding.sloped) {
      FinishBytes<kCount, true>(rounding, sums, valid, pixel, step);
    } else {
      FinishBytes<kCount, false>(rounding, sums, valid, pixel, step);
    }
  }
  template <size_t kCount, bool kSloped, class T>
  static void FinishBytes(const Rounding& rounding, const T* sums, size_t valid,
                          std::byte* pixel, size_t step) {
    const auto bytes = [&](const T& sum) {
      return rounding.Round(
          rounding.template Steps<kSloped>(Real(sum, rounding)));
    };
    if (valid >= kLanes) {
      for (size_t p = 0; p < kCount; ++p, pixel += step) {
        const Bytes whole = bytes(sums[p]);
        std::memcpy(pixel, &whole, sizeof whole);
      }
    } else {
      for (size_t p = 0; p < kCount; ++p, pixel += step) {
        Store(bytes(sums[p]), valid, pixel);
      }
    }
  }
  // Wraps, as ONNX's sums do.
  static Ints Sum(const Ints& a, const Ints& b) {
    return reinterpret_cast<Ints>(reinterpret_cast<Unsigned>(a) +
                                  reinterpret_cast<Unsigned>(b));
  }
  static Ints Whole(const Ints& sums) { return sums; }
  static Ints Whole(const Floats& sums) {
    return __builtin_convertvector(sums, Ints);
  }
  static Floats Real(const Ints& sums, const Rounding& rounding) {
    const Ints all = Sum(sums, rounding.start);
    return __builtin_convertvector(all, Floats);
  }
  static Floats Real(const Floats& sums, const Rounding&) { return sums; }

  // `kPixels` pixels and `kGroups` vectors of results at once.
  template <size_t kPixels, size_t kGroups>
  static void Multiply(const Tile& tile, const TileEpilogue& epilogue,
                       size_t first, size_t channel) {
    constexpr size_t kSums = kGroups * V::kSums;
    constexpr size_t kGroupBytes = kLanes * kWeightCell;
    using Result = std::conditional_t<kIsFloat, Floats, Ints>;
    typename V::Sum sums[kPixels][kSums];
    const std::byte* pixels[kPixels];
#pragma GCC unroll 16
    for (size_t p = 0; p < kPixels; ++p) {
      pixels[p] = tile.pixels[first + p];
#pragma GCC unroll 16
      for (size_t s = 0; s < kSums; ++s) sums[p][s] = V::Zero();
    }
    const std::byte* weights = tile.weights + channel * kWeightCell;
    constexpr auto kStep = static_cast<ptrdiff_t>(CellBytes(V::kForm));
    const auto length = static_cast<ptrdiff_t>(tile.cells) * kStep;
    for (size_t run = 0; run < tile.runs; ++run) {
      const ptrdiff_t begin = tile.offsets[run];
      const ptrdiff_t end = begin + length;
      for (ptrdiff_t at = begin; at < end; at += kStep) {
        typename V::Weights w[kSums];
#pragma GCC unroll 16
        for (size_t s = 0; s < kSums; ++s) {
          w[s] = V::LoadWeights(weights + s / V::kSums * kGroupBytes,
                                s % V::kSums);
        }
#pragma GCC unroll 16
        for (size_t p = 0; p < kPixels; ++p) {
          const typename V::Values x = V::Broadcast(pixels[p] + at);
#pragma GCC unroll 16
          for (size_t s = 0; s < kSums; ++s) {
            sums[p][s] = V::Dot(sums[p][s], w[s], x);
          }
        }
        weights += tile.weight_step;
      }
    }
    // By way of memory: rounding is many instructions, here once for all
    // pixels.
    Result results[kGroups][kPixels];
#pragma GCC unroll 16
    for (size_t p = 0; p < kPixels; ++p) {
#pragma GCC unroll 16
      for (size_t g = 0; g < kGroups; ++g) {
        results[g][p] = V::template Join<Result>(&sums[p][g * V::kSums]);
      }
    }
    for (size_t g = 0; g < kGroups; ++g) {
      const size_t at = channel + g * kLanes;
      // FinishPixels counts channels from here as if all lay together.
      const size_t gap =
          tile.together_step - tile.together * SizeOf(epilogue.output);
      FinishPixels<kPixels>(
          epilogue, results[g], at, tile.channels - at,
          tile.output + at / tile.together * gap + first * tile.output_step,
          tile.output_step);
    }
  }

  template <size_t kGroups>
  static void MultiplyAll(const Tile& tile, const TileEpilogue& epilogue,
                          size_t channel) {
    size_t first = 0;
    for (; first + V::kPixels <= tile.count; first += V::kPixels) {
      Multiply<V::kPixels, kGroups>(tile, epilogue, first, channel);
    }
    const size_t left = tile.count - first;
    if ((left & 4) != 0) {
      Multiply<4, kGroups>(tile, epilogue, first, channel);
      first += 4;
    }
    if ((left & 2) != 0) {
      Multiply<2, kGroups>(tile, epilogue, first, channel);
      first += 2;
    }
    if ((left & 1) != 0) {
      Multiply<1, kGroups>(tile, epilogue, first, channel);
    }
  }

  static void RunTile(const Tile& tile, const TileEpilogue& epilogue) {
    static_assert(V::kPixels <= 8);
    size_t channel = 0;
    if constexpr (V::kGroups > 1) {
      constexpr size_t kWide = V::kGroups * kLanes;
      // The last group may be partly filled, but must have somebody in it.
      while (tile.channels > channel + kWide - kLanes) {
        MultiplyAll<V::kGroups>(tile, epilogue, channel);
        channel += kWide;
      }
    }
    for (; channel < tile.channels; channel += kLanes) {
      MultiplyAll<1>(tile, epilogue, channel);
    }
  }

  template <size_t kPixels>
  static void MultiplyDepthwise(const DepthwiseTile& tile,
                                const TileEpilogue& epilogue, size_t first) {
    const std::byte* pixels[kPixels];
#pragma GCC unroll 16
    for (size_t p = 0; p < kPixels; ++p) pixels[p] = tile.pixels[first + p];
    for (size_t channel = 0; channel < tile.channels; channel += kLanes) {
      Floats sums[kPixels];
#pragma GCC unroll 16
      for (size_t p = 0; p < kPixels; ++p) sums[p] = Floats{};
      const std::byte* weights =
          tile.weights + channel * (kIsFloat ? sizeof(float) : sizeof(int8_t));
      const auto at = static_cast<ptrdiff_t>(channel * sizeof(float));
      for (size_t tap = 0; tap < tile.taps; ++tap) {
        Floats w;
        if constexpr (kIsFloat) {
          w = Load<Floats>(weights);
        } else {
          w = __builtin_convertvector(V::template Widen<Ints>(weights), Floats);
        }
        const ptrdiff_t offset = tile.offsets[tap] + at;
#pragma GCC unroll 16
        for (size_t p = 0; p < kPixels; ++p) {
          sums[p] += Load<Floats>(pixels[p] + offset) * w;
        }
        weights += tile.weight_step;
      }
      FinishPixels<kPixels>(epilogue, sums, channel, tile.channels - channel,
                            tile.output + first * tile.output_step,
                            tile.output_step);
    }
  }

  static void Depthwise(const DepthwiseTile& tile,
                        const TileEpilogue& epilogue) {
    size_t first = 0;
    for (; first + 4 <= tile.count; first += 4) {
      MultiplyDepthwise<4>(tile, epilogue, first);
    }
    for (; first < tile.count; ++first) {
      MultiplyDepthwise<1>(tile, epilogue, first);
    }
  }

  static void Convert(const std::byte* from, bool is_signed, size_t count,
                      std::byte* to) {
    if constexpr (V::kForm == TileForm::kWide) {
      auto* const out = reinterpret_cast<int16_t*>(to);
      if (is_signed) {
        const auto* const in = reinterpret_cast<const int8_t*>(from);
        for (size_t i = 0; i < count; ++i) out[i] = in[i];
      } else {
        const auto* const in = reinterpret_cast<const uint8_t*>(from);
        for (size_t i = 0; i < count; ++i) out[i] = in[i];
      }
    } else if (is_signed == (V::kForm == TileForm::kSigned)) {
      std::memcpy(to, from, count);
    } else {
      for (size_t i = 0; i < count; ++i) to[i] = from[i] ^ std::byte{0x80};
    }
  }

  static void ToFloats(const std::byte* from, bool is_signed, int32_t zero,
                       size_t count, float* to) {
    if (is_signed) {
      const auto* const in = reinterpret_cast<const int8_t*>(from);
      for (size_t i = 0; i < count; ++i) {
        to[i] = static_cast<float>(int32_t{in[i]} - zero);
      }
    } else {
      const auto* const in = reinterpret_cast<const uint8_t*>(from);
      for (size_t i = 0; i < count; ++i) {
        to[i] = static_cast<float>(int32_t{in[i]} - zero);
      }
    }
  }

  static constexpr ByteKernels OfBytes(
      const char* name, const WinogradKernels* winograd = nullptr) {
    return {name, V::kForm, RunTile, Depthwise, Convert, ToFloats, winograd};
  }
};

}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_TILES_TILE_LOOPS_H_
