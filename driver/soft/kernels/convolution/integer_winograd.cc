// Quantised convolutions with windows of 3x3 by Winograd's method (winograd.h),
// on CPUs without a dot product of bytes.
//
//   band ──▶ tiles of 6x6 pixels, transformed: as many as the cache holds
//   weights of a block of channels, transformed once for all these tiles
//   36 products, some tiles at a time ──▶ transformed back, rounded, written
//
// The weights are kept as they are for tiles: transformed they take eight times
// the memory, and to do it again costs little beside the products.

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/status/status.h"
#include "driver/soft/kernels/convolution/integer_layer.h"
#include "driver/soft/tiles/packed_weights.h"
#include "driver/soft/tiles/winograd.h"

namespace rknnd::soft {
namespace {

constexpr auto kSide = static_cast<int64_t>(kWinogradSide);
constexpr int64_t kInCell = 4;  // input channels
// Of the second-level cache: pixels, and the same transformed.
constexpr size_t kPixelBytes = size_t{192} << 10;
constexpr size_t kTileBytes = size_t{256} << 10;
// Tiles whose sums are there at once: whole groups of what CPUs multiply.
constexpr int64_t kSummed = 24;

int64_t RoundUp(int64_t value, int64_t to) {
  return (value + to - 1) / to * to;
}

// Whether the sums of each channel stay below kWinogradSums.
bool SumsAreExact(const IntegerConvolutionSpec& spec) {
  const bool is_signed = spec.input.type == DataType::kInt8;
  int64_t low = (is_signed ? -128 : 0) - spec.input_zero;
  int64_t high = low + 255;
  if (spec.input_zero_at.has_value()) low = -(high = 255);
  const auto each = static_cast<ptrdiff_t>(
      ProductOf(spec.weights_shape, 1, spec.weights_shape.size()));
  for (auto w = spec.weights.begin(); w < spec.weights.end(); w += each) {
    int64_t most = 0, least = 0;
    for (auto at = w; at < w + each; ++at) {
      most += *at * (*at > 0 ? high : low);
      least += *at * (*at > 0 ? low : high);
    }
    if (std::max(most, -least) >= kWinogradSums) return false;
  }
  return true;
}

class IntegerWinograd final : public IntegerLayer {
 public:
  IntegerWinograd(const IntegerConvolutionSpec& spec, CpuLevel level)
      : IntegerLayer(spec, level, TileForm::kWide),
        across_(RoundUp(window_.output[2], kSide) / kSide),
        stride_(RoundUp(window_.channels, 2 * kMaxLanes)) {}

  [[nodiscard]] bool Suits(const IntegerConvolutionSpec& spec) const;
  absl::Status Make(const KernelRequest& request,
                    const IntegerConvolutionSpec& spec);
  [[nodiscard]] std::string implementation() const override {
    return absl::StrCat(IntegerLayer::implementation(), " winograd");
  }

 private:
  void RunBand(const BandRows& rows, const Work& work) const override;
  [[nodiscard]] int64_t blocks() const override { return packed_.blocks(); }
  // Tiles [first, first + count) of the band, all blocks.
  void RunTiles(const BandRows& rows, int64_t first, int64_t count,
                const Work& work) const;
  [[nodiscard]] int16_t* At(const Work& work, size_t place) const {
    return As<int16_t>(work.scratch + place);
  }

  const int64_t across_;  // tiles of a row
  const int64_t stride_;  // values of a transformed tile at each place
  int64_t at_once_ = 1;   // tiles
  PackedShape packed_;
  // From one place to the next, in values.
  size_t tile_plane_ = 0, weight_plane_ = 0, sum_plane_ = 0;
  // In the scratch.
  size_t tiles_at_ = 0, weights_at_ = 0, sums_at_ = 0;
};

bool IntegerWinograd::Suits(const IntegerConvolutionSpec& spec) const {
  const TileWindow& w = window_;
  constexpr Sides kWindow = {1, 3, 3}, kOnes = {1, 1, 1};
  if (loops_.winograd == nullptr || w.kernel != kWindow || w.strides != kOnes ||
      w.dilations != kOnes || w.input[0] != 1 || w.groups != 1 ||
      w.channels % kInCell != 0 || !output_last_) {
    return false;
  }
  // In products; those of tiles, weights and outputs are what their transforms
  // were measured to cost.
  constexpr int64_t kPerPixel = 4, kPerOutput = 16, kPerWeight = 4;
  const int64_t tiles = RoundUp(w.output[1], kSide) / kSide * across_;
  const int64_t pairs = w.channels * w.outputs;
  const int64_t cost =
      tiles * static_cast<int64_t>(kWinogradPlaces) *
          (pairs + kPerPixel * stride_ + kPerOutput * w.outputs) +
      pairs * static_cast<int64_t>(kWinogradPlaces) * kPerWeight;
  const int64_t plain =
      w.output[1] * w.output[2] * pairs * static_cast<int64_t>(kWinogradTaps);
  return cost < plain && RoundsOf(spec.weights) == 1 && SumsAreExact(spec);
}

absl::Status IntegerWinograd::Make(const KernelRequest& request,
                                   const IntegerConvolutionSpec& spec) {
  band_ = BandFor(window_, window_.channels, value_size(), kPixelBytes);
  band_.width = across_ * kSide + 2;
  band_.output_rows = RoundUp(band_.output_rows, kSide);
  band_.rows = band_.output_rows + 2;
  packed_ = {1, window_.outputs, window_.channels,
             static_cast<int64_t>(kWinogradTaps), 3};
  // Not so large that the places fall on each other in the cache.
  const auto plane = [](int64_t values, size_t size) {
    return static_cast<size_t>(
               RoundUp(values, 64 / static_cast<int64_t>(size))) +
           kWinogradSlack / size;
  };
  constexpr auto kPlaces = static_cast<int64_t>(kWinogradPlaces);
  const int64_t tiles = band_.output_rows / kSide * across_;
  const int64_t fit =
      static_cast<int64_t>(kTileBytes / sizeof(int16_t)) / (kPlaces * stride_);
  const int64_t strips = tiles / std::clamp<int64_t>(fit, 1, tiles);
  at_once_ = (tiles + strips - 1) / strips;
  tile_plane_ = plane(at_once_ * stride_, sizeof(int16_t));
  weight_plane_ = plane(
      window_.channels / kInCell * static_cast<int64_t>(packed_.StepOf(0)),
      sizeof(int16_t));
  sum_plane_ =
      plane(kSummed * static_cast<int64_t>(kChannelBlock), sizeof(int32_t));
  ReserveBand(false, kChannelBlock);
  // The last pixel's channels are read as whole vectors.
  Reserve(4 * kMaxLanes * sizeof(int16_t));
  tiles_at_ = Reserve(kWinogradPlaces * tile_plane_ * sizeof(int16_t));
  weights_at_ = Reserve(kWinogradPlaces * weight_plane_ * sizeof(int16_t));
  sums_at_ = Reserve(kWinogradPlaces * sum_plane_ * sizeof(int32_t));
  const auto pack = [&](std::byte* room) {
    PackWeights(packed_, spec.weights, room);
  };
  return Keep(request, spec, packed_.bytes(), pack, 1, {});
}

void IntegerWinograd::RunBand(const BandRows& rows, const Work& work) const {
  BandRows whole = rows;
  whole.end = rows.begin + RoundUp(rows.end - rows.begin, kSide);
  FillBand(whole, 0, work);
  const int64_t tiles = (whole.end - whole.begin) / kSide * across_;
  for (int64_t first = 0; first < tiles; first += at_once_) {
    RunTiles(rows, first, std::min(at_once_, tiles - first), work);
  }
}

void IntegerWinograd::RunTiles(const BandRows& rows, int64_t first,
                               int64_t count, const Work& work) const {
  const WinogradKernels& kernels = *loops_.winograd;
  const auto pixel =
      static_cast<size_t>(window_.channels) * sizeof(int16_t);  // bytes
  const size_t row = static_cast<size_t>(band_.width) * pixel;
  int16_t* const tiles = At(work, tiles_at_);
  for (int64_t i = 0; i < count; ++i) {
    const auto down = static_cast<size_t>((first + i) / across_ * kSide);
    const auto right = static_cast<size_t>((first + i) % across_ * kSide);
    kernels.input(work.scratch + down * row + right * pixel, pixel, row,
                  static_cast<size_t>(window_.channels), work.zero,
                  tiles + i * stride_, tile_plane_);
  }
  const size_t size = SizeOf(epilogue_.output);
  const size_t pixel_out = static_cast<size_t>(window_.outputs) * size;
  const size_t row_out = static_cast<size_t>(window_.output[2]) * pixel_out;
  std::byte* const output =
      work.output + static_cast<size_t>(NumberOf(rows)) * pixel_out;
  int16_t* const weights = At(work, weights_at_);
  auto* const sums = As<int32_t>(work.scratch + sums_at_);
  const auto cells = static_cast<size_t>(window_.channels / kInCell);
  for (int64_t block = work.blocks.begin; block < work.blocks.end; ++block) {
    StopPoint();
    const size_t step = packed_.StepOf(block);
    kernels.weights(weights_ + packed_.OffsetOf(0, block), cells * step,
                    weights, weight_plane_);
    const auto channels = static_cast<size_t>(packed_.ChannelsOf(block));
    const int64_t channel = block * static_cast<int64_t>(kChannelBlock);
    const TileEpilogue epilogue = EpilogueAt(channel, nullptr);
    for (int64_t at = 0; at < count; at += kSummed) {
      const int64_t summed = std::min(kSummed, count - at);
      for (size_t place = 0; place < kWinogradPlaces; ++place) {
        kernels.multiply(tiles + place * tile_plane_ + at * stride_,
                         static_cast<size_t>(stride_),
                         static_cast<size_t>(summed),
                         weights + place * weight_plane_, step, cells, channels,
                         sums + place * sum_plane_);
      }
      for (int64_t i = 0; i < summed; ++i) {
        const int64_t down = (first + at + i) / across_ * kSide;
        const int64_t right = (first + at + i) % across_ * kSide;
        kernels.output(
            sums + static_cast<size_t>(i) * kChannelBlock, sum_plane_, epilogue,
            channels,
            static_cast<size_t>(std::min(kSide, rows.end - rows.begin - down)),
            static_cast<size_t>(std::min(kSide, window_.output[2] - right)),
            output + static_cast<size_t>(down) * row_out +
                static_cast<size_t>(right) * pixel_out +
                static_cast<size_t>(channel) * size,
            pixel_out, row_out);
      }
    }
  }
}

}  // namespace

MadeKernel MakeIntegerWinograd(const KernelRequest& request,
                               const IntegerConvolutionSpec& spec,
                               CpuLevel level) {
  auto layer = std::make_unique<IntegerWinograd>(spec, level);
  if (!layer->Suits(spec)) return std::unique_ptr<Kernel>();
  RKNND_RETURN_IF_ERROR(layer->Make(request, spec));
  return layer;
}

}  // namespace rknnd::soft
