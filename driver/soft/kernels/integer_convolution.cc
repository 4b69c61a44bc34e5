// See integer_convolution.h.

#include "driver/soft/kernels/integer_convolution.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <numeric>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status/status.h"
#include "driver/soft/kernels/checks.h"
#include "driver/soft/kernels/loops.h"
#include "driver/soft/tiles/packed_weights.h"
#include "driver/soft/tiles/tile_kernels.h"
#include "driver/soft/tiles/window.h"

namespace rknnd::soft {
namespace {

constexpr size_t kAlignment = 64;
// What of a picture is brought into form at once: a part of the second-level
// cache of any CPU, beside weights.
constexpr size_t kBandBytes = size_t{96} << 10;
// Channels of a depthwise layer at a time: their band stays in the cache.
constexpr int64_t kDepthwiseChannels = 64;
// Layers below are over before another core has heard of them.

size_t Aligned(size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

// One pixel's channels lie together.
bool IsLast(const TensorSpec& spec) {
  return spec.channels_last() || spec.shape[1] == 1 ||
         ProductOf(spec.shape, 2, spec.shape.size()) == 1;
}

TileWindow WindowOf(const IntegerConvolutionSpec& spec) {
  TileWindow window;
  window.images = spec.input.shape[0];
  window.channels = spec.input.shape[1];
  window.outputs = spec.output.shape[1];
  window.groups = spec.groups;
  const size_t axes = spec.strides.size();
  const size_t skipped = window.input.size() - axes;
  for (size_t a = 0; a < axes; ++a) {
    const size_t at = skipped + a;
    window.input[at] = spec.input.shape[a + 2];
    window.output[at] = spec.output.shape[a + 2];
    window.kernel[at] = spec.weights_shape[a + 2];
    window.strides[at] = spec.strides[a];
    window.dilations[at] = spec.dilations[a];
    window.pads[at] = spec.pads_begin[a];
    window.has_padding |= spec.pads_begin[a] != 0 || spec.pads_end[a] != 0;
  }
  return window;
}

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

class IntegerConvolution final : public Kernel {
 public:
  IntegerConvolution(const IntegerConvolutionSpec& spec, CpuLevel level)
      : loops_(ByteKernelsFor(level)),
        window_(WindowOf(spec)),
        input_signed_(spec.input.type == DataType::kInt8),
        input_last_(IsLast(spec.input)),
        output_last_(IsLast(spec.output)),
        input_zero_(spec.input_zero),
        input_zero_at_(spec.input_zero_at) {
    if (input_last_ && output_last_) window_ = window_.Simplified();
    ReadEpilogue(spec);
    products_ = spec.output.elements() *
                ProductOf(spec.weights_shape, 1, spec.weights_shape.size());
  }

  absl::Status Make(const KernelRequest& request,
                    const IntegerConvolutionSpec& spec);

  [[nodiscard]] size_t scratch_size() const override { return scratch_; }
  [[nodiscard]] bool reads_constant(size_t i) const override {
    return i == 0 || input_zero_at_ == i;
  }
  [[nodiscard]] std::string implementation() const override {
    return absl::StrCat("bytes ", loops_.name);
  }
  [[nodiscard]] uint32_t PartsFor(uint32_t cores) const override {
    return PartsOf({.operations = products_},
                   ByRows() ? window_.rows() : blocks(), cores);
  }
  absl::Status Run(Inputs inputs, Outputs outputs,
                   std::byte* scratch) const override {
    return RunPart({0, 1}, inputs, outputs, scratch);
  }
  absl::Status RunPart(Part part, Inputs inputs, Outputs outputs,
                       std::byte* scratch) const override;

 private:
  // What a run works on.
  struct Work {
    const std::byte* input;
    std::byte* output;
    std::byte* scratch;
    int32_t zero;          // of the input
    const int32_t* start;  // of the sums, for each channel
    Range blocks;          // of all groups' channels
  };

  void ReadEpilogue(const IntegerConvolutionSpec& spec);
  void MakeTiles(const IntegerConvolutionSpec& spec);
  void MakeDepthwise();
  absl::Status Pack(const KernelRequest& request,
                    const IntegerConvolutionSpec& spec);

  [[nodiscard]] int64_t blocks() const {
    return depthwise_ ? 1 : packed_.groups * packed_.blocks();
  }
  // Several rows for each of the cores that any SoC has, or nothing else.
  [[nodiscard]] bool ByRows() const {
    constexpr int64_t kRows = 8;
    return blocks() == 1 || window_.rows() >= kRows;
  }
  // The zero point as the activations have it once they are in form.
  [[nodiscard]] int32_t ZeroInForm(int32_t zero) const {
    if (loops_.form == TileForm::kUnsigned && input_signed_) return zero + 128;
    if (loops_.form == TileForm::kSigned && !input_signed_) return zero - 128;
    return zero;
  }
  [[nodiscard]] int32_t ZeroAtRun(Inputs inputs) const;

  void RunBand(const BandRows& rows, const Work& work) const;
  void RunDepthwiseBand(const BandRows& rows, const Work& work) const;
  void RunJoinedBand(const BandRows& rows, const Work& work) const;
  // Writes the rows that `rows` need into the scratch, channels
  // [first, first + band_.channels) of the input's as far as there are any.
  void FillBand(const BandRows& rows, int64_t first, const Work& work) const;
  // `count` pixels of a row of the input to `to`, in form.
  void FillPixels(const std::byte* row, int64_t count, int64_t first,
                  const Work& work, std::byte* to) const;
  void FillPadding(int64_t pixels, const Work& work, std::byte* to) const;
  // Dense outputs are computed into `tile` and spread out from there.
  void Spread(const std::byte* tile, size_t count, int64_t number,
              int64_t channel, int64_t channels, std::byte* output) const;

  [[nodiscard]] size_t value_size() const {
    return depthwise_ ? sizeof(float) : SizeOf(loops_.form);
  }
  [[nodiscard]] int64_t output_plane() const {
    return window_.output[0] * window_.output[1] * window_.output[2];
  }
  [[nodiscard]] int64_t input_plane() const {
    return window_.input[0] * window_.input[1] * window_.input[2];
  }
  // Of the first pixel of an output row, over all images.
  [[nodiscard]] int64_t NumberOf(const BandRows& rows) const {
    return ((rows.image * window_.output[0] + rows.depth) * window_.output[1] +
            rows.begin) *
           window_.output[2];
  }
  [[nodiscard]] TileEpilogue EpilogueAt(int64_t channel,
                                        const int32_t* start) const {
    TileEpilogue epilogue = epilogue_;
    epilogue.start = start == nullptr ? nullptr : start + channel;
    epilogue.bias += channel;
    epilogue.scale += channel;
    return epilogue;
  }

  const ByteKernels& loops_;
  TileWindow window_;
  const bool input_signed_, input_last_, output_last_;
  const int32_t input_zero_;
  const std::optional<size_t> input_zero_at_;
  bool depthwise_ = false;
  // Pixels of a row that a depthwise layer of few channels computes as one, so
  // that they fill a vector.
  int64_t joined_ = 1;
  bool direct_ = false;  // the input is read where it is
  int64_t products_ = 0;
  Band band_;
  std::vector<ptrdiff_t> offsets_;  // bytes, of all rounds
  size_t cells_ = 0;
  PackedShape packed_;
  TileEpilogue epilogue_;  // of channel 0; its start is that of Work
  const std::byte* weights_ = nullptr;
  const int32_t* start_ = nullptr;  // or, with input_zero_at_, sums of weights
  // Behind the band.
  size_t start_at_ = 0, gather_at_ = 0, tile_at_ = 0, scratch_ = 0;
};

void IntegerConvolution::ReadEpilogue(const IntegerConvolutionSpec& spec) {
  TileEpilogue& epilogue = epilogue_;
  switch (spec.epilogue.activation) {
    case Activation::kRelu:
      epilogue.slope = 0.0F;
      break;
    case Activation::kLeakyRelu:
      epilogue.slope = spec.epilogue.alpha;
      break;
    default:
      break;
  }
  const bool clips = spec.epilogue.activation == Activation::kClip;
  epilogue.low =
      clips ? spec.epilogue.alpha : std::numeric_limits<float>::lowest();
  epilogue.high =
      clips ? spec.epilogue.beta : std::numeric_limits<float>::max();
  if (spec.output.type == DataType::kInt32) {
    epilogue.output = TileOutput::kSum;
  } else if (spec.output.type == DataType::kFloat32) {
    epilogue.output = TileOutput::kFloat;
  } else {
    const bool is_signed = spec.output.type == DataType::kInt8;
    const auto low =
        static_cast<float>((is_signed ? -128 : 0) - spec.output_zero);
    const float high = low + 255.0F;
    epilogue.low = std::clamp(epilogue.low, low, high);
    epilogue.high = std::clamp(epilogue.high, low, high);
    epilogue.zero = spec.output_zero;
  }
}

void IntegerConvolution::MakeTiles(const IntegerConvolutionSpec& spec) {
  const bool natural = (loops_.form == TileForm::kUnsigned && !input_signed_) ||
                       (loops_.form == TileForm::kSigned && input_signed_);
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
}

void IntegerConvolution::MakeDepthwise() {
  depthwise_ = true;
  band_ = BandFor(window_, std::min(window_.channels, kDepthwiseChannels),
                  value_size(), kBandBytes);
  for (const ptrdiff_t offset : RunsOf(window_, band_).offsets) {
    offsets_.push_back(offset * static_cast<ptrdiff_t>(value_size()));
  }
  constexpr auto kLanes = static_cast<int64_t>(kMaxLanes);
  if (output_last_ && window_.strides[2] == 1) {
    joined_ =
        std::clamp<int64_t>(kLanes / window_.channels, 1, window_.output[2]);
  }
}

absl::Status IntegerConvolution::Pack(const KernelRequest& request,
                                      const IntegerConvolutionSpec& spec) {
  const auto taps = static_cast<int64_t>(offsets_.size());
  const size_t bytes = depthwise_
                           ? DepthwiseBytes(window_.channels, taps, joined_)
                           : packed_.bytes();
  RKNND_ASSIGN_OR_RETURN(const std::byte* const weights,
                         request.weights.Store(bytes, [&](std::byte* room) {
                           if (depthwise_) {
                             PackDepthwise(window_.channels, taps, joined_,
                                           spec.weights, room);
                           } else {
                             PackWeights(packed_, spec.weights, room);
                           }
                         }));
  weights_ = weights;
  // One array after the other, of so many entries: whole vectors of the last
  // channels can be read.
  const auto channels = static_cast<size_t>(window_.outputs);
  const size_t entries = channels * static_cast<size_t>(joined_);
  const size_t stride = entries + kMaxLanes;
  const auto fill = [&](std::byte* room) {
    auto* const start = As<int32_t>(room);
    float* const bias = As<float>(room) + stride;
    float* const scale = bias + stride;
    const std::vector<int32_t> sums = WeightSums(spec.weights, window_.outputs);
    for (size_t i = 0; i < entries; ++i) {
      const size_t c = i % channels;
      start[i] = input_zero_at_.has_value()
                     ? sums[c]
                     : -ZeroInForm(input_zero_) * sums[c];
      bias[i] = spec.bias.empty() ? 0.0F : spec.bias[c];
      scale[i] = spec.scale[spec.scale.size() == 1 ? 0 : c];
    }
  };
  RKNND_ASSIGN_OR_RETURN(
      const std::byte* const kept,
      request.weights.Store(3 * stride * sizeof(float), fill));
  start_ = As<int32_t>(kept);
  epilogue_.bias = As<float>(kept) + stride;
  epilogue_.scale = epilogue_.bias + stride;
  return absl::OkStatus();
}

absl::Status IntegerConvolution::Make(const KernelRequest& request,
                                      const IntegerConvolutionSpec& spec) {
  if (window_.is_depthwise() && window_.channels > 1 &&
      RoundsOf(spec.weights) == 1 && FloatsAreExact(spec)) {
    MakeDepthwise();
  } else {
    MakeTiles(spec);
  }
  if (!direct_) {
    scratch_ =
        Aligned(static_cast<size_t>(band_.values(window_)) * value_size() +
                kMaxLanes * sizeof(float));
  }
  start_at_ = scratch_;
  if (input_zero_at_.has_value() && !depthwise_) {
    scratch_ += Aligned((static_cast<size_t>(window_.outputs) + kMaxLanes) *
                        sizeof(int32_t));
  }
  gather_at_ = scratch_;
  if (!input_last_) {
    scratch_ += Aligned(static_cast<size_t>(window_.channels));
  }
  tile_at_ = scratch_;
  if (!output_last_) {
    scratch_ += Aligned(kPixelsAtOnce * sizeof(float) *
                        std::max<size_t>(kChannelBlock, kDepthwiseChannels));
  }
  return Pack(request, spec);
}

int32_t IntegerConvolution::ZeroAtRun(Inputs inputs) const {
  if (!input_zero_at_.has_value()) return input_zero_;
  const std::byte* const at = inputs[*input_zero_at_];
  return input_signed_ ? int32_t{*As<int8_t>(at)} : int32_t{*As<uint8_t>(at)};
}

absl::Status IntegerConvolution::RunPart(Part part, Inputs inputs,
                                         Outputs outputs,
                                         std::byte* scratch) const {
  Work work{inputs[0],         outputs[0], scratch,
            ZeroAtRun(inputs), start_,     {0, blocks()}};
  if (input_zero_at_.has_value() && !depthwise_) {
    auto* const start = As<int32_t>(scratch + start_at_);
    for (int64_t c = 0; c < window_.outputs; ++c) {
      start[c] = -ZeroInForm(work.zero) * start_[c];
    }
    work.start = start;
  }
  Range rows = {0, window_.rows()};
  (ByRows() ? rows : work.blocks) =
      ShareOf(part, ByRows() ? rows.end : work.blocks.end);
  ForEachBand(window_, band_.output_rows, rows.begin, rows.end,
              [&](const BandRows& band) {
                !depthwise_    ? RunBand(band, work)
                : joined_ == 1 ? RunDepthwiseBand(band, work)
                               : RunJoinedBand(band, work);
              });
  return absl::OkStatus();
}

void IntegerConvolution::FillPadding(int64_t pixels, const Work& work,
                                     std::byte* to) const {
  const auto count = static_cast<size_t>(pixels * band_.channels);
  if (depthwise_) {
    std::memset(to, 0, count * sizeof(float));
  } else if (loops_.form == TileForm::kWide) {
    std::fill_n(As<int16_t>(to), count, static_cast<int16_t>(work.zero));
  } else {
    std::memset(to, ZeroInForm(work.zero), count);
  }
}

void IntegerConvolution::FillPixels(const std::byte* row, int64_t count,
                                    int64_t first, const Work& work,
                                    std::byte* to) const {
  const auto bring = [&](const std::byte* from, int64_t values,
                         std::byte* room) {
    if (depthwise_) {
      loops_.to_floats(from, input_signed_, work.zero,
                       static_cast<size_t>(values), As<float>(room));
    } else {
      loops_.convert(from, input_signed_, static_cast<size_t>(values), room);
    }
  };
  const int64_t all = window_.channels;
  if (input_last_ && band_.channels == all) {
    bring(row, count * all, to);
    return;
  }
  const int64_t channels = std::min(band_.channels, all - first);
  const size_t step = static_cast<size_t>(band_.channels) * value_size();
  for (int64_t p = 0; p < count; ++p, to += step) {
    if (input_last_) {
      bring(row + p * all + first, channels, to);
      continue;
    }
    std::byte* const gathered = work.scratch + gather_at_;
    for (int64_t c = 0; c < channels; ++c) {
      gathered[c] = row[(first + c) * input_plane() + p];
    }
    bring(gathered, channels, to);
  }
}

void IntegerConvolution::FillBand(const BandRows& rows, int64_t first,
                                  const Work& work) const {
  const BandRow row = RowOf(window_, band_);
  const int64_t pixel = input_last_ ? window_.channels : 1;  // bytes
  const std::byte* const image =
      work.input + rows.image * input_plane() * window_.channels;
  const auto step = static_cast<size_t>(band_.channels) * value_size();
  const auto row_bytes = static_cast<size_t>(band_.width) * step;
  // Rows without padding follow each other on both sides: one long run.
  const bool follow = row.inside == window_.input[2] &&
                      row.inside == band_.width && input_last_ &&
                      band_.channels == window_.channels;
  int64_t filled = 0;  // places
  ForEachBandRow(window_, band_, rows, [&](int64_t place, int64_t y) {
    if (place < filled) return;
    std::byte* const to = work.scratch + static_cast<size_t>(place) * row_bytes;
    if (y >= 0 && follow) {
      const int64_t count =
          std::min(HeightOf(window_, rows) - place % band_.rows,
                   window_.input[1] - y % window_.input[1]);
      FillPixels(image + y * window_.input[2] * pixel, count * row.inside,
                 first, work, to);
      filled = place + count;
      return;
    }
    if (y < 0) {
      FillPadding(band_.width, work, to);
      return;
    }
    FillPadding(row.before, work, to);
    FillPixels(image + (y * window_.input[2] + row.first) * pixel, row.inside,
               first, work, to + static_cast<size_t>(row.before) * step);
    FillPadding(row.after, work,
                to + static_cast<size_t>(row.before + row.inside) * step);
  });
}

void IntegerConvolution::Spread(const std::byte* tile, size_t count,
                                int64_t number, int64_t channel,
                                int64_t channels, std::byte* output) const {
  const size_t size = SizeOf(epilogue_.output);
  const int64_t plane = output_plane();
  for (size_t p = 0; p < count; ++p, ++number) {
    const int64_t first =
        (number / plane * window_.outputs + channel) * plane + number % plane;
    for (int64_t c = 0; c < channels; ++c) {
      std::memcpy(
          output + static_cast<size_t>(first + c * plane) * size,
          tile + (p * static_cast<size_t>(channels) + static_cast<size_t>(c)) *
                     size,
          size);
    }
  }
}

void IntegerConvolution::RunBand(const BandRows& rows, const Work& work) const {
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
          loops_.tile(tile, EpilogueAt(channel, work.start));
          if (!output_last_) {
            Spread(tile.output, count, number, channel, channels, work.output);
          }
        }
      });
}

void IntegerConvolution::RunDepthwiseBand(const BandRows& rows,
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

void IntegerConvolution::RunJoinedBand(const BandRows& rows,
                                       const Work& work) const {
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

MadeKernel MakeIntegerConvolution(const KernelRequest& request,
                                  const IntegerConvolutionSpec& spec,
                                  CpuLevel level) {
  auto kernel = std::make_unique<IntegerConvolution>(spec, level);
  RKNND_RETURN_IF_ERROR(kernel->Make(request, spec));
  return kernel;
}

}  // namespace rknnd::soft
