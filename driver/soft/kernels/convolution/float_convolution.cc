// See float_convolution.h.

#include "driver/soft/kernels/convolution/float_convolution.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status/status.h"
#include "driver/soft/kernels/checks.h"
#include "driver/soft/kernels/convolution/float_bands.h"
#include "driver/soft/kernels/epilogue.h"
#include "driver/soft/kernels/loops.h"
#include "driver/soft/tiles/packed_weights.h"
#include "driver/soft/tiles/pixel_rows.h"
#include "driver/soft/tiles/tile_kernels.h"
#include "driver/soft/tiles/turn_floats.h"
#include "driver/soft/tiles/window.h"

namespace rknnd::soft {
namespace {

constexpr size_t kAlignment = 64;
// As of integer_convolution.cc.
constexpr size_t kBandBytes = size_t{96} << 10;
// Of rows of pixels, whose bands take longer to fill than to read.
constexpr size_t kRowsBandBytes = size_t{256} << 10;
constexpr size_t kFloat = sizeof(float);
constexpr auto kInBlock = static_cast<int64_t>(kChannelBlock);

size_t Aligned(size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

// What a vector holds.
enum class Lanes : uint8_t {
  kOutputs,  // output channels of a pixel
  kOwn,      // the same, each of its own input channel
  kPixels,   // pixels of a row
};

struct Phase {
  TileWindow window;
  std::vector<Sides> first;  // of its pixels in the output
  Sides step = {1, 1, 1};
  Lanes lanes = Lanes::kOutputs;
  Band band;
  std::vector<ptrdiff_t> offsets;  // bytes
  PackedShape packed;
  const std::byte* weights = nullptr;
};

class FloatConvolution final : public Kernel {
 public:
  FloatConvolution(const KernelRequest& request,
                   const FloatConvolutionSpec& spec, CpuLevel level)
      : loops_(FloatKernelsFor(level)),
        input_(spec.input),
        output_(spec.output),
        output_spec_(spec.output),
        step_(request) {
    const size_t skipped = 5 - spec.output.shape.size();
    for (size_t a = 2; a < spec.output.shape.size(); ++a) {
      sides_[skipped + a - 2] = spec.output.shape[a];
    }
  }

  absl::Status Make(const KernelRequest& request,
                    const FloatConvolutionSpec& spec);

  [[nodiscard]] size_t scratch_size() const override { return scratch_; }
  [[nodiscard]] std::string implementation() const override {
    return absl::StrCat("floats ", loops_.name);
  }
  [[nodiscard]] bool reads_constant(size_t i) const override {
    return i != 1 && i != 2;
  }
  [[nodiscard]] uint32_t PartsFor(uint32_t cores) const override {
    if (has_rest_ && !IsWhole(phases_[0])) return 1;
    return PartsOf({.operations = products_}, std::max(rows(), blocks()),
                   cores);
  }
  absl::Status Run(Inputs inputs, Outputs outputs,
                   std::byte* scratch) const override;
  absl::Status RunPart(Part part, Inputs inputs, Outputs outputs,
                       std::byte* scratch) const override;

 private:
  // Where cores share it out: between rows, or between blocks of output
  // channels where there are fewer rows than cores, as in sound and in text.
  [[nodiscard]] int64_t rows() const;
  [[nodiscard]] int64_t blocks() const;

  absl::Status MakePhase(const KernelRequest& request,
                         const FloatConvolutionSpec& spec,
                         const ConvolutionPhase& from);
  // All output channels of these rows, or of vectors of output channels those
  // in some blocks of packed weights.
  void RunBand(const Phase& phase, const BandRows& rows, const Range& blocks,
               const float* input, float* output, std::byte* scratch) const;
  void RunRows(const Phase& phase, const BandRows& rows, float* output,
               std::byte* scratch) const;
  // Channels [channel, channel + count) of a block of packed weights for some
  // pixels of a row, to where they lie in the output.
  void RunTile(const Phase& phase, Tile tile, const BandRows& rows,
               int64_t number, int64_t channel, float* output,
               std::byte* room) const;
  // What is left of the epilogue, over these rows and channels.
  void FinishBand(const Phase& phase, const BandRows& rows,
                  const Range& channels, const float* answer,
                  const float* added, float* output) const;
  // Whether the phase makes all of the output.
  [[nodiscard]] bool IsWhole(const Phase& phase) const {
    return phase.step == Sides{1, 1, 1} && phase.window.output == sides_;
  }
  // The output's pixel that pixel `number` of `rows` is, of those that begin at
  // `first`.
  [[nodiscard]] int64_t PixelOf(const Phase& phase, const Sides& first,
                                const BandRows& rows, int64_t number) const;

  const FloatKernels& loops_;
  const FloatLayout input_, output_;
  const TensorSpec output_spec_;
  EpilogueStep step_;
  bool has_rest_ = false;    // of the epilogue, or of a block to be cleared
  Sides sides_ = {1, 1, 1};  // of the output
  int64_t products_ = 0;
  std::vector<Phase> phases_;
  TileEpilogue epilogue_;
  size_t tile_at_ = 0, apart_at_ = 0, scratch_ = 0;
};

TileWindow WindowOf(const FloatConvolutionSpec& spec,
                    const ConvolutionPhase& phase) {
  TileWindow window;
  window.images = spec.input.shape[0];
  window.channels = spec.input.shape[1];
  window.outputs =
      spec.output.shape[1] * static_cast<int64_t>(phase.output_first.size());
  window.groups = spec.groups;
  const size_t axes = phase.kernel.size();
  for (size_t a = 0; a < axes; ++a) {
    const size_t at = 3 - axes + a;
    window.input[at] = spec.input.shape[a + 2];
    window.output[at] = phase.outputs[a];
    window.kernel[at] = phase.kernel[a];
    window.strides[at] = phase.strides[a];
    window.dilations[at] = phase.dilations[a];
    window.pads[at] = phase.pads[a];
  }
  return window;
}

absl::Status FloatConvolution::MakePhase(const KernelRequest& request,
                                         const FloatConvolutionSpec& spec,
                                         const ConvolutionPhase& from) {
  Phase phase;
  phase.window = WindowOf(spec, from);
  const size_t axes = from.kernel.size();
  for (const Shape& first : from.output_first) {
    std::copy(first.begin(), first.end(),
              phase.first.emplace_back().end() - static_cast<ptrdiff_t>(axes));
  }
  std::copy(from.output_steps.begin(), from.output_steps.end(),
            phase.step.end() - static_cast<ptrdiff_t>(axes));
  TileWindow& window = phase.window;
  if (window.is_depthwise() && window.channels > 1) {
    phase.lanes = Lanes::kOwn;
  } else if (SuitsRows(window)) {
    phase.lanes = Lanes::kPixels;
  }
  phase.band =
      BandFor(window, window.channels, kFloat,
              phase.lanes == Lanes::kPixels ? kRowsBandBytes : kBandBytes);
  const WindowRuns runs = RunsOf(window, phase.band);
  for (const ptrdiff_t offset : phase.lanes == Lanes::kPixels
                                    ? RowTaps(window, phase.band)
                                    : runs.offsets) {
    phase.offsets.push_back(offset * static_cast<ptrdiff_t>(kFloat));
  }
  phase.packed = {window.groups,
                  window.outputs / window.groups,
                  window.channels / window.groups,
                  window.kernel[0] * window.kernel[1] * window.kernel[2],
                  runs.positions,
                  1,
                  1};
  const auto taps = static_cast<int64_t>(phase.offsets.size());
  const int64_t each_tap =
      phase.lanes == Lanes::kPixels ? RowOutputs(window) : window.channels;
  const size_t bytes =
      phase.lanes == Lanes::kOutputs
          ? phase.packed.bytes()
          : static_cast<size_t>(each_tap * taps) * kFloat + kWeightSlack;
  RKNND_ASSIGN_OR_RETURN(
      phase.weights, request.weights.Store(bytes, [&](std::byte* room) {
        if (phase.lanes == Lanes::kOutputs) {
          PackWeights(phase.packed, std::span<const float>(from.weights), room);
          return;
        }
        if (phase.lanes == Lanes::kPixels) {
          PackRows(window, from.weights, As<float>(room));
          return;
        }
        auto* const to = As<float>(room);
        for (int64_t c = 0; c < window.channels; ++c) {
          for (int64_t k = 0; k < taps; ++k) {
            to[k * window.channels + c] =
                from.weights[static_cast<size_t>(c * taps + k)];
          }
        }
      }));
  products_ += window.rows() * window.output[2] * window.outputs *
               phase.packed.inputs * phase.packed.kernel;
  scratch_ =
      std::max(scratch_,
               Aligned(static_cast<size_t>(phase.band.values(window)) * kFloat +
                       kMaxLanes * kFloat));
  phases_.push_back(std::move(phase));
  return absl::OkStatus();
}

absl::Status FloatConvolution::Make(const KernelRequest& request,
                                    const FloatConvolutionSpec& spec) {
  for (const ConvolutionPhase& phase : spec.phases) {
    RKNND_RETURN_IF_ERROR(MakePhase(request, spec, phase));
  }
  tile_at_ = scratch_;
  size_t apart = output_.together == 1 ? kChannelBlock : 0;
  for (const Phase& phase : phases_) {
    if (phase.lanes == Lanes::kPixels || output_.together == 1) {
      apart = std::max(apart, static_cast<size_t>(phase.lanes == Lanes::kOutputs
                                                      ? 0
                                                      : phase.window.outputs));
    }
  }
  scratch_ += Aligned(kPixelsAtOnce * kFloat * apart);
  apart_at_ = scratch_;
  if (step_.adds()) scratch_ += Aligned(spec.output.bytes());
  epilogue_.output = TileOutput::kFloat;
  epilogue_.low = -std::numeric_limits<float>::infinity();
  epilogue_.high = std::numeric_limits<float>::infinity();
  step_.MoveActivationTo(epilogue_);
  has_rest_ = step_.has_rest() || output_.channels % output_.together != 0;

  size_t channels = 0;
  for (const Phase& phase : phases_) {
    channels = std::max(channels, static_cast<size_t>(phase.window.outputs));
  }
  std::vector<float> numbers(2 * (channels + kMaxLanes), 1.0F);
  std::fill_n(numbers.begin(), channels + kMaxLanes, 0.0F);
  for (size_t c = 0; !spec.bias.empty() && c < channels; ++c) {
    numbers[c] = spec.bias[c % spec.bias.size()];
  }
  RKNND_ASSIGN_OR_RETURN(
      const std::byte* const kept,
      request.weights.StoreCopy(std::as_bytes(std::span(numbers))));
  epilogue_.bias = As<float>(kept);
  epilogue_.scale = epilogue_.bias + channels + kMaxLanes;
  return absl::OkStatus();
}

absl::Status FloatConvolution::Run(Inputs inputs, Outputs outputs,
                                   std::byte* scratch) const {
  RKNND_RETURN_IF_ERROR(RunPart({0, 1}, inputs, outputs, scratch));
  if (has_rest_ && !IsWhole(phases_[0])) {
    ClearPadding(output_spec_, As<float>(outputs[0]));
    step_.Activate(As<float>(outputs[0]));
  }
  return absl::OkStatus();
}

int64_t FloatConvolution::rows() const {
  int64_t rows = phases_[0].window.rows();
  for (const Phase& phase : phases_) {
    rows = std::min(rows, phase.window.rows());
  }
  return rows;
}

int64_t FloatConvolution::blocks() const {
  const Phase& phase = phases_[0];
  // Cores write to cache lines of their own.
  const bool apart = kInBlock % output_.together == 0;
  return phases_.size() == 1 && IsWhole(phase) && apart &&
                 phase.lanes == Lanes::kOutputs && phase.packed.groups == 1
             ? phase.packed.blocks()
             : 1;
}

void FloatConvolution::FinishBand(const Phase& phase, const BandRows& rows,
                                  const Range& channels, const float* answer,
                                  const float* added, float* output) const {
  const int64_t first = PixelOf(phase, phase.first[0], rows, 0);
  const int64_t count = (rows.end - rows.begin) * sides_[2] * output_.together;
  for (int64_t c = channels.begin; c < channels.end; c += output_.together) {
    const int64_t begin = output_.At(rows.image, c, first);
    const Range elements = {begin, begin + count};
    for (int64_t i = begin; added != nullptr && i < elements.end; ++i) {
      output[i] = answer[i] + added[i];
    }
    ClearPadding(output_spec_, output, elements);
    step_.Activate(output, elements);
  }
}

absl::Status FloatConvolution::RunPart(Part part, Inputs inputs,
                                       Outputs outputs,
                                       std::byte* scratch) const {
  auto* const output = As<float>(outputs[0]);
  const float* added =
      step_.adds() ? As<float>(inputs[step_.add_index()]) : nullptr;
  // The output may be the very tensor that is added.
  float* const answer = step_.adds() ? As<float>(scratch + apart_at_) : output;
  const bool by_rows = part.count <= rows();
  for (const Phase& phase : phases_) {
    const Part whole;
    const Range rows = ShareOf(by_rows ? part : whole, phase.window.rows());
    const Range blocks = ShareOf(by_rows ? whole : part, phase.packed.blocks());
    const Range channels =
        ShareOf(by_rows ? whole : part, output_.channels, kInBlock);
    ForEachBand(phase.window, phase.band.output_rows, rows.begin, rows.end,
                [&](const BandRows& band) {
                  RunBand(phase, band, blocks, As<float>(inputs[0]), answer,
                          scratch);
                  if (has_rest_ && IsWhole(phase)) {
                    FinishBand(phase, band, channels, answer, added, output);
                  }
                });
  }
  return absl::OkStatus();
}

void FloatConvolution::RunRows(const Phase& phase, const BandRows& rows,
                               float* output, std::byte* scratch) const {
  const TileWindow& window = phase.window;
  const int64_t width = window.output[2];
  const bool direct =
      output_.together == 1 && phase.step[2] == 1 && phase.first.size() == 1;
  RowTile tile;
  tile.offsets = phase.offsets.data();
  tile.taps = phase.offsets.size();
  tile.weights = phase.weights;
  tile.weight_step = static_cast<size_t>(RowOutputs(window)) * kFloat;
  tile.outputs = static_cast<size_t>(window.outputs);
  for (int64_t y = 0; y < rows.end - rows.begin; ++y) {
    for (int64_t x = 0; x < width;) {
      const int64_t count = std::min<int64_t>(width - x, kPixelsAtOnce);
      const auto place = [&](int64_t channel) {
        const auto part = static_cast<size_t>(channel / output_.channels);
        return output + output_.At(rows.image, channel % output_.channels,
                                   PixelOf(phase, phase.first[part], rows,
                                           y * width + x));
      };
      tile.pixels =
          scratch +
          static_cast<size_t>(y * window.strides[1] * phase.band.width + x) *
              kFloat;
      tile.count = static_cast<size_t>(count);
      tile.output =
          direct ? reinterpret_cast<std::byte*>(place(0)) : scratch + tile_at_;
      tile.output_step =
          static_cast<size_t>(direct ? output_.pixels : count) * kFloat;
      StopPoint();
      loops_.row(tile, epilogue_);
      const auto* const from = As<float>(scratch + tile_at_);
      for (int64_t c = 0; !direct && c < window.outputs;) {
        // As many as lie together.
        const int64_t own = c % output_.channels;
        const int64_t channels =
            std::min({window.outputs - c, output_.channels - own,
                      output_.together - own % output_.together});
        TurnFloats(from + c * count, count, channels, count, place(c),
                   output_.together * phase.step[2]);
        c += channels;
      }
      x += count;
    }
  }
}

int64_t FloatConvolution::PixelOf(const Phase& phase, const Sides& first,
                                  const BandRows& rows, int64_t number) const {
  const int64_t y = rows.begin + number / phase.window.output[2];
  const int64_t x = number % phase.window.output[2];
  const int64_t plane = first[0] + rows.depth * phase.step[0];
  return (plane * sides_[1] + first[1] + y * phase.step[1]) * sides_[2] +
         first[2] + x * phase.step[2];
}

void FloatConvolution::RunTile(const Phase& phase, Tile tile,
                               const BandRows& rows, int64_t number,
                               int64_t channel, float* output,
                               std::byte* room) const {
  const auto together = static_cast<size_t>(output_.together);
  const int64_t step = phase.step[2];
  TileEpilogue epilogue = epilogue_;
  const size_t channels = tile.channels;
  const std::byte* const weights = tile.weights;
  const auto place = [&](int64_t at) {
    const Sides& first =
        phase.first[static_cast<size_t>(at / output_.channels)];
    return reinterpret_cast<std::byte*>(
        output + output_.At(rows.image, at % output_.channels,
                            PixelOf(phase, first, rows, number)));
  };
  // As many channels at a time as the loops can store.
  for (size_t done = 0; done < channels;) {
    const int64_t at = channel + static_cast<int64_t>(done);
    epilogue.bias = epilogue_.bias + at;
    epilogue.scale = epilogue_.scale + at;
    tile.weights = weights + done * kWeightCell;
    if (together == 1) {
      tile.output = room;
      tile.output_step = channels * kFloat;
    } else {
      const auto own = static_cast<size_t>(at % output_.channels);
      tile.channels = std::min(channels - done,
                               static_cast<size_t>(output_.channels) - own);
      if (own % together != 0 || together % loops_.lanes != 0) {
        tile.channels = std::min(tile.channels, together - own % together);
      } else {
        tile.together = together;
        tile.together_step =
            static_cast<size_t>(output_.pixels) * together * kFloat;
      }
      tile.output = place(at);
      tile.output_step = together * static_cast<size_t>(step) * kFloat;
    }
    loops_.tile(tile, epilogue);
    done += tile.channels;
  }
  if (together != 1) return;
  const auto* const from = As<float>(room);
  if (step == 1 && phase.first.size() == 1) {
    TurnFloats(from, static_cast<int64_t>(channels),
               static_cast<int64_t>(tile.count), static_cast<int64_t>(channels),
               As<float>(place(channel)), output_.pixels);
    return;
  }
  for (size_t c = 0; c < channels; ++c) {
    auto* const to = As<float>(place(channel + static_cast<int64_t>(c)));
    for (size_t p = 0; p < tile.count; ++p) {
      to[p * static_cast<size_t>(step)] = from[p * channels + c];
    }
  }
}

void FloatConvolution::RunBand(const Phase& phase, const BandRows& rows,
                               const Range& blocks, const float* input,
                               float* output, std::byte* scratch) const {
  if (phase.lanes == Lanes::kPixels) {
    FillPlanes(phase.window, phase.band, rows, input_, input,
               As<float>(scratch));
    RunRows(phase, rows, output, scratch);
    return;
  }
  FillBand(phase.window, phase.band, rows, input_, input, As<float>(scratch));
  std::byte* const room = scratch + tile_at_;
  const PackedShape& packed = phase.packed;
  const auto each_in = packed.inputs * static_cast<int64_t>(kFloat);
  // Pixels of a row lie in steps; of several rows only where nothing is left
  // out between them.
  ForEachPixels(
      phase.window, phase.band, rows, scratch, kFloat, !IsWhole(phase),
      [&](const std::byte** pixels, size_t count, int64_t number) {
        if (phase.lanes == Lanes::kOwn) {
          DepthwiseTile tile;
          tile.pixels = pixels;
          tile.count = count;
          tile.offsets = phase.offsets.data();
          tile.taps = phase.offsets.size();
          tile.weight_step =
              static_cast<size_t>(phase.window.channels) * kFloat;
          const int64_t pixel = PixelOf(phase, phase.first[0], rows, number);
          // As RunTile: the channels that lie together, or all into the room.
          const int64_t together =
              output_.together == 1 ? output_.channels : output_.together;
          TileEpilogue epilogue = epilogue_;
          for (int64_t c = 0; c < output_.channels; c += together) {
            StopPoint();
            epilogue.bias = epilogue_.bias + c;
            epilogue.scale = epilogue_.scale + c;
            tile.channels =
                static_cast<size_t>(std::min(together, output_.channels - c));
            tile.weights = phase.weights + static_cast<size_t>(c) * kFloat;
            if (output_.together == 1) {
              tile.output = room;
              tile.output_step = tile.channels * kFloat;
            } else {
              tile.output = reinterpret_cast<std::byte*>(
                  output + output_.At(rows.image, c, pixel));
              tile.output_step =
                  static_cast<size_t>(together * phase.step[2]) * kFloat;
            }
            loops_.depthwise(tile, epilogue);
            for (size_t p = 0; p < count; ++p) pixels[p] += together * 4;
          }
          if (output_.together != 1) return;
          const auto* const from = As<float>(room);
          for (int64_t c = 0; c < output_.channels; ++c) {
            float* const to = output + output_.At(rows.image, c, pixel);
            for (size_t p = 0; p < count; ++p) {
              to[static_cast<int64_t>(p) * phase.step[2]] =
                  from[p * static_cast<size_t>(output_.channels) +
                       static_cast<size_t>(c)];
            }
          }
          return;
        }
        Tile tile;
        tile.pixels = pixels;
        tile.count = count;
        tile.offsets = phase.offsets.data();
        tile.runs = phase.offsets.size();
        tile.cells = static_cast<size_t>(packed.cells());
        for (int64_t group = 0; group < packed.groups; ++group) {
          for (int64_t block = blocks.begin; block < blocks.end; ++block) {
            StopPoint();
            tile.weights = phase.weights + packed.OffsetOf(group, block);
            tile.weight_step = packed.StepOf(block);
            tile.channels = static_cast<size_t>(packed.ChannelsOf(block));
            RunTile(phase, tile, rows, number,
                    group * packed.outputs + block * kInBlock, output, room);
          }
          for (size_t p = 0; p < count; ++p) pixels[p] += each_in;
        }
      });
}

}  // namespace

MadeKernel MakeFloatConvolution(const KernelRequest& request,
                                const FloatConvolutionSpec& spec,
                                CpuLevel level) {
  auto kernel = std::make_unique<FloatConvolution>(request, spec, level);
  RKNND_RETURN_IF_ERROR(kernel->Make(request, spec));
  return kernel;
}

}  // namespace rknnd::soft
