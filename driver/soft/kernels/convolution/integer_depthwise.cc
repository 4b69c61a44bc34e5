// Quantised convolutions in which each channel is by itself, where floats hold
// all sums exactly: multiplying bytes in fours has nothing to add up there.

#include <algorithm>
#include <array>
#include <cstdlib>
#include <numeric>

#include "base/status/status.h"
#include "driver/soft/kernels/convolution/integer_layer.h"
#include "driver/soft/tiles/packed_weights.h"

namespace rknnd::soft {
namespace {

// Channels at a time: their band stays in the cache.
constexpr int64_t kChannels = 64;

// Whether floats hold each sum, and each part of one, exactly.
bool FloatsAreExact(const IntegerConvolutionSpec& spec) {
  constexpr int64_t kExact = int64_t{1} << 24;
  const auto each = static_cast<ptrdiff_t>(
      ProductOf(spec.weights_shape, 1, spec.weights_shape.size()));
  for (auto w = spec.weights.begin(); w < spec.weights.end(); w += each) {
    const int64_t sum = std::accumulate(
        w, w + each, int64_t{0},
        [](int64_t total, int16_t weight) { return total + std::abs(weight); });
    if (sum * 255 >= kExact) return false;
  }
  return true;
}

class IntegerDepthwise final : public IntegerLayer {
 public:
  IntegerDepthwise(const IntegerConvolutionSpec& spec, CpuLevel level)
      : IntegerLayer(spec, level, TileForm::kFloat) {}

  [[nodiscard]] bool Suits(const IntegerConvolutionSpec& spec) const {
    return window_.is_depthwise() && window_.channels > 1 &&
           RoundsOf(spec.weights) == 1 && FloatsAreExact(spec);
  }
  absl::Status Make(const KernelRequest& request,
                    const IntegerConvolutionSpec& spec);

 private:
  void RunBand(const BandRows& rows, const Work& work) const override {
    joined_ == 1 ? RunChannels(rows, work) : RunJoined(rows, work);
  }
  void RunChannels(const BandRows& rows, const Work& work) const;
  void RunJoined(const BandRows& rows, const Work& work) const;

  // Pixels of a row that are computed as one where channels are few, so that
  // they fill a vector.
  int64_t joined_ = 1;
  std::vector<ptrdiff_t> offsets_;  // bytes
};

absl::Status IntegerDepthwise::Make(const KernelRequest& request,
                                    const IntegerConvolutionSpec& spec) {
  band_ = BandFor(window_, std::min(window_.channels, kChannels), value_size(),
                  kBandBytes);
  for (const ptrdiff_t offset : RunsOf(window_, band_).offsets) {
    offsets_.push_back(offset * static_cast<ptrdiff_t>(value_size()));
  }
  constexpr auto kLanes = static_cast<int64_t>(kMaxLanes);
  if (output_last_ && window_.strides[2] == 1) {
    joined_ =
        std::clamp<int64_t>(kLanes / window_.channels, 1, window_.output[2]);
  }
  ReserveBand(false, kChannels);
  const auto taps = static_cast<int64_t>(offsets_.size());
  const auto pack = [&](std::byte* room) {
    PackDepthwise(window_.channels, taps, joined_, spec.weights, room);
  };
  return Keep(request, spec, DepthwiseBytes(window_.channels, taps, joined_),
              pack, joined_, {});
}

void IntegerDepthwise::RunChannels(const BandRows& rows,
                                   const Work& work) const {
  const size_t size = SizeOf(epilogue_.output);
  DepthwiseTile tile;
  tile.offsets = offsets_.data();
  tile.taps = offsets_.size();
  tile.weight_step = static_cast<size_t>(window_.channels);
  for (int64_t first = 0; first < window_.channels; first += band_.channels) {
    const int64_t channels = std::min(band_.channels, window_.channels - first);
    tile.channels = static_cast<size_t>(channels);
    tile.weights = weights_ + first;
    FillBand(rows, first, work);
    ForEachPixels(
        window_, band_, rows, work.scratch, value_size(), false,
        [&](const std::byte** pixels, size_t count, int64_t number) {
          StopPoint();
          number += NumberOf(rows);

          tile.pixels = pixels;
          tile.count = count;
          if (output_last_) {
            tile.output_step = tile.weight_step * size;
            tile.output = work.output +
                          static_cast<size_t>(number) * tile.output_step +
                          static_cast<size_t>(first) * size;
          } else {
            tile.output_step = tile.channels * size;
            tile.output = work.scratch + tile_at_;
          }
          loops_.depthwise(tile, EpilogueAt(first, nullptr));
          if (!output_last_) {
            Spread(tile.output, count, number, first, channels, work.output);
          }
        });
  }
}

void IntegerDepthwise::RunJoined(const BandRows& rows, const Work& work) const {
  FillBand(rows, 0, work);
  const TileEpilogue epilogue = EpilogueAt(0, nullptr);
  DepthwiseTile tile;
  tile.offsets = offsets_.data();
  tile.taps = offsets_.size();
  tile.weights = weights_;
  tile.weight_step = static_cast<size_t>(joined_ * window_.channels);
  const size_t row_out = static_cast<size_t>(window_.output[2]) *
                         static_cast<size_t>(window_.channels) *
                         SizeOf(epilogue_.output);
  tile.output_step = tile.weight_step * SizeOf(epilogue_.output);
  std::byte* output = work.output + static_cast<size_t>(NumberOf(rows)) *
                                        row_out /
                                        static_cast<size_t>(window_.output[2]);
  const int64_t row_step = window_.strides[1] * band_.row_values() *
                           static_cast<int64_t>(sizeof(float));
  const std::byte* row = work.scratch;
  for (int64_t y = rows.begin; y < rows.end; ++y) {
    std::array<const std::byte*, kPixelsAtOnce> pixels;
    tile.output = output;
    tile.pixels = pixels.data();
    tile.channels = tile.weight_step;
    const std::byte* pixel = row;
    // The last few pixels of a row are one that is not full.
    for (int64_t left = window_.output[2]; left > 0;) {
      const auto count = static_cast<size_t>(
          std::clamp<int64_t>(left / joined_, 1, kPixelsAtOnce));
      if (left < joined_) {
        tile.channels = static_cast<size_t>(left * window_.channels);
      }
      for (size_t p = 0; p < count; ++p) {
        pixels[p] = pixel;
        pixel += tile.weight_step * sizeof(float);
      }
      tile.count = count;
      loops_.depthwise(tile, epilogue);
      tile.output += count * tile.output_step;
      left -= static_cast<int64_t>(count) * joined_;
    }
    output += row_out;
    row += row_step;
  }
}

}  // namespace

MadeKernel MakeIntegerDepthwise(const KernelRequest& request,
                                const IntegerConvolutionSpec& spec,
                                CpuLevel level) {
  auto layer = std::make_unique<IntegerDepthwise>(spec, level);
  if (!layer->Suits(spec)) return std::unique_ptr<Kernel>();
  RKNND_RETURN_IF_ERROR(layer->Make(request, spec));
  return layer;
}

}  // namespace rknnd::soft
