// Quantised convolutions and products as tiles of pixels by blocks of output
// channels, summed over runs of bytes (tile_kernels.h).

#include <algorithm>

#include "base/status/status.h"
#include "driver/soft/kernels/convolution/integer_layer.h"
#include "driver/soft/tiles/packed_weights.h"

namespace rknnd::soft {
namespace {

class IntegerTiles final : public IntegerLayer {
 public:
  IntegerTiles(const IntegerConvolutionSpec& spec, CpuLevel level)
      : IntegerLayer(spec, level, ByteKernelsFor(level).form) {}

  absl::Status Make(const KernelRequest& request,
                    const IntegerConvolutionSpec& spec);

 private:
  void Prepare(const Work& work) const override;
  void RunBand(const BandRows& rows, const Work& work) const override;
  [[nodiscard]] int64_t blocks() const override {
    return packed_.groups * packed_.blocks();
  }
  // Where the sums of each channel start.
  [[nodiscard]] const int32_t* StartOf(const Work& work) const {
    return input_zero_at_.has_value() ? As<int32_t>(work.scratch + start_at_)
                                      : starts_;
  }

  bool direct_ = false;             // the input is read where it is
  std::vector<ptrdiff_t> offsets_;  // bytes, of all rounds
  size_t cells_ = 0;
  PackedShape packed_;
  size_t start_at_ = 0;
};

absl::Status IntegerTiles::Make(const KernelRequest& request,
                                const IntegerConvolutionSpec& spec) {
  const bool natural = (form_ == TileForm::kUnsigned && !input_signed_) ||
                       (form_ == TileForm::kSigned && input_signed_);
  if (natural && input_last_ && !window_.has_padding && window_.input[0] == 1) {
    band_ = WholePicture(window_);
    // A cell that is not whole would read behind the last pixel.
    direct_ = RunsOf(window_, band_).length % packed_.cell == 0;
  }
  if (!direct_) {
    band_ = BandFor(window_, window_.channels, value_size(), kBandBytes);
  }
  const WindowRuns runs = RunsOf(window_, band_);
  packed_ = {window_.groups,
             window_.outputs / window_.groups,
             window_.channels / window_.groups,
             window_.kernel[0] * window_.kernel[1] * window_.kernel[2],
             runs.positions,
             RoundsOf(spec.weights)};
  cells_ = static_cast<size_t>(packed_.cells());
  for (int64_t round = 0; round < packed_.rounds; ++round) {
    for (const ptrdiff_t offset : runs.offsets) {
      offsets_.push_back(offset * static_cast<ptrdiff_t>(value_size()));
    }
  }
  ReserveBand(direct_, kChannelBlock);
  const auto channels = static_cast<size_t>(window_.outputs);
  if (input_zero_at_.has_value()) {
    start_at_ = Reserve((channels + kMaxLanes) * sizeof(int32_t));
  }
  // With a zero point of run time, the sums of the weights.
  std::vector<int32_t> starts = WeightSums(spec.weights, window_.outputs);
  for (int32_t& start : starts) {
    if (!input_zero_at_.has_value()) start *= -ZeroInForm(input_zero_);
  }
  const auto pack = [&](std::byte* room) {
    PackWeights(packed_, spec.weights, room);
  };
  return Keep(request, spec, packed_.bytes(), pack, 1, starts);
}

void IntegerTiles::Prepare(const Work& work) const {
  if (!input_zero_at_.has_value()) return;
  auto* const start = As<int32_t>(work.scratch + start_at_);
  for (int64_t c = 0; c < window_.outputs; ++c) {
    start[c] = -ZeroInForm(work.zero) * starts_[c];
  }
}

void IntegerTiles::RunBand(const BandRows& rows, const Work& work) const {
  const std::byte* band = work.scratch;
  if (direct_) {
    band = work.input + rows.image * input_plane() * window_.channels +
           rows.begin * window_.strides[1] * band_.row_values();
  } else {
    FillBand(rows, 0, work);
  }
  const size_t size = SizeOf(epilogue_.output);
  const int64_t each_in = packed_.inputs * static_cast<int64_t>(value_size());
  const int64_t first_pixel = NumberOf(rows);
  ForEachPixels(
      window_, band_, rows, band, value_size(), false,
      [&](const std::byte** pixels, size_t count, int64_t number) {
        number += first_pixel;

        Tile tile;
        tile.pixels = pixels;
        tile.count = count;
        tile.offsets = offsets_.data();
        tile.runs = offsets_.size();
        tile.cells = cells_;
        int64_t group = 0;
        for (int64_t n = work.blocks.begin; n < work.blocks.end; ++n) {
          StopPoint();
          const int64_t block = n % packed_.blocks();
          // The group's channels begin further on in each pixel.
          const int64_t moved = n / packed_.blocks() - group;
          for (size_t p = 0; moved != 0 && p < count; ++p) {
            pixels[p] += moved * each_in;
          }
          group += moved;
          const int64_t channel = group * packed_.outputs +
                                  block * static_cast<int64_t>(kChannelBlock);
          const int64_t channels = packed_.ChannelsOf(block);
          tile.weights = weights_ + packed_.OffsetOf(group, block);
          tile.weight_step = packed_.StepOf(block);
          tile.channels = static_cast<size_t>(channels);
          if (output_last_) {
            tile.output_step = static_cast<size_t>(window_.outputs) * size;
            tile.output = work.output +
                          static_cast<size_t>(number) * tile.output_step +
                          static_cast<size_t>(channel) * size;
          } else {
            tile.output_step = tile.channels * size;
            tile.output = work.scratch + tile_at_;
          }
          loops_.tile(tile, EpilogueAt(channel, StartOf(work)));
          if (!output_last_) {
            Spread(tile.output, count, number, channel, channels, work.output);
          }
        }
      });
}

}  // namespace

MadeKernel MakeIntegerTiles(const KernelRequest& request,
                            const IntegerConvolutionSpec& spec,
                            CpuLevel level) {
  auto layer = std::make_unique<IntegerTiles>(spec, level);
  RKNND_RETURN_IF_ERROR(layer->Make(request, spec));
  return layer;
}

}  // namespace rknnd::soft
