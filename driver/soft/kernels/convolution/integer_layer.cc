// See integer_layer.h.

#include "driver/soft/kernels/convolution/integer_layer.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/status/status.h"

namespace rknnd::soft {
namespace {

constexpr size_t kAlignment = 64;

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

}  // namespace

TileEpilogue EpilogueOf(DataType output, int32_t zero, const Epilogue& behind) {
  TileEpilogue epilogue;
  switch (behind.activation) {
    case Activation::kRelu:
      epilogue.slope = 0.0F;
      break;
    case Activation::kLeakyRelu:
      epilogue.slope = behind.alpha;
      break;
    default:
      break;
  }
  const bool clips = behind.activation == Activation::kClip;
  epilogue.low = clips ? behind.alpha : std::numeric_limits<float>::lowest();
  epilogue.high = clips ? behind.beta : std::numeric_limits<float>::max();
  if (output == DataType::kInt32) {
    epilogue.output = TileOutput::kSum;
  } else if (output == DataType::kFloat32) {
    epilogue.output = TileOutput::kFloat;
  } else {
    const bool is_signed = output == DataType::kInt8;
    const auto low = static_cast<float>((is_signed ? -128 : 0) - zero);
    const float high = low + 255.0F;
    epilogue.low = std::clamp(epilogue.low, low, high);
    epilogue.high = std::clamp(epilogue.high, low, high);
    // A Relu is no slope where there are limits anyway.
    if (behind.activation == Activation::kRelu) {
      epilogue.slope = 1.0F;
      epilogue.low = 0.0F;
    }
    epilogue.zero = zero;
  }
  return epilogue;
}

IntegerLayer::IntegerLayer(const IntegerConvolutionSpec& spec, CpuLevel level,
                           TileForm form)
    : loops_(ByteKernelsFor(level)),
      form_(form),
      window_(WindowOf(spec)),
      input_signed_(spec.input.type == DataType::kInt8),
      input_last_(IsLast(spec.input)),
      output_last_(IsLast(spec.output)),
      input_zero_(spec.input_zero),
      input_zero_at_(spec.input_zero_at) {
  if (input_last_ && output_last_) window_ = window_.Simplified();
  epilogue_ = EpilogueOf(spec.output.type, spec.output_zero, spec.epilogue);
  products_ = spec.output.elements() *
              ProductOf(spec.weights_shape, 1, spec.weights_shape.size());
}

size_t IntegerLayer::Reserve(size_t bytes) {
  const size_t at = scratch_;
  scratch_ += (bytes + kAlignment - 1) / kAlignment * kAlignment;
  return at;
}

void IntegerLayer::ReserveBand(bool direct, size_t largest_block) {
  if (!direct) {
    Reserve(static_cast<size_t>(band_.values(window_)) * value_size() +
            kMaxLanes * sizeof(float));
  }
  if (!input_last_) {
    gather_at_ = Reserve(static_cast<size_t>(window_.channels));
  }
  if (!output_last_) {
    tile_at_ = Reserve(kPixelsAtOnce * sizeof(float) * largest_block);
  }
}

absl::Status IntegerLayer::Keep(const KernelRequest& request,
                                const IntegerConvolutionSpec& spec,
                                size_t weight_bytes,
                                absl::FunctionRef<void(std::byte*)> pack,
                                int64_t repeats,
                                const std::vector<int32_t>& starts) {
  RKNND_ASSIGN_OR_RETURN(weights_, request.weights.Store(weight_bytes, pack));
  // One array after the other, of so many entries: whole vectors of the last
  // channels can be read.
  const auto channels = static_cast<size_t>(window_.outputs);
  const size_t entries = channels * static_cast<size_t>(repeats);
  const size_t stride = entries + kMaxLanes;
  const auto fill = [&](std::byte* room) {
    float* const bias = As<float>(room);
    float* const scale = bias + stride;
    for (size_t i = 0; i < entries; ++i) {
      const size_t c = i % channels;
      bias[i] = spec.bias.empty() ? 0.0F : spec.bias[c];
      scale[i] = spec.scale[spec.scale.size() == 1 ? 0 : c];
    }
    std::copy(starts.begin(), starts.end(), As<int32_t>(room) + 2 * stride);
  };
  RKNND_ASSIGN_OR_RETURN(
      const std::byte* const kept,
      request.weights.Store((starts.empty() ? 2 : 3) * stride * sizeof(float),
                            fill));
  epilogue_.bias = As<float>(kept);
  epilogue_.scale = epilogue_.bias + stride;
  starts_ = As<int32_t>(kept) + 2 * stride;
  return absl::OkStatus();
}

std::string IntegerLayer::implementation() const {
  return absl::StrCat("bytes ", loops_.name);
}

bool IntegerLayer::ByRows() const {
  constexpr int64_t kRows = 8;
  return blocks() == 1 || window_.rows() >= kRows;
}

uint32_t IntegerLayer::PartsFor(uint32_t cores) const {
  return PartsOf({.operations = products_},
                 ByRows() ? window_.rows() : blocks(), cores);
}

int32_t IntegerLayer::ZeroInForm(int32_t zero) const {
  if (form_ == TileForm::kUnsigned && input_signed_) return zero + 128;
  if (form_ == TileForm::kSigned && !input_signed_) return zero - 128;
  return zero;
}

int32_t IntegerLayer::ZeroAtRun(Inputs inputs) const {
  if (!input_zero_at_.has_value()) return input_zero_;
  const std::byte* const at = inputs[*input_zero_at_];
  return input_signed_ ? int32_t{*As<int8_t>(at)} : int32_t{*As<uint8_t>(at)};
}

absl::Status IntegerLayer::RunPart(Part part, Inputs inputs, Outputs outputs,
                                   std::byte* scratch) const {
  Work work{inputs[0], outputs[0], scratch, ZeroAtRun(inputs), {0, blocks()}};
  Prepare(work);
  Range rows = {0, window_.rows()};
  (ByRows() ? rows : work.blocks) =
      ShareOf(part, ByRows() ? rows.end : work.blocks.end);
  ForEachBand(window_, band_.output_rows, rows.begin, rows.end,
              [&](const BandRows& band) { RunBand(band, work); });
  return absl::OkStatus();
}

void IntegerLayer::FillPadding(int64_t pixels, const Work& work,
                               std::byte* to) const {
  const auto count = static_cast<size_t>(pixels * band_.channels);
  if (form_ == TileForm::kFloat) {
    std::memset(to, 0, count * sizeof(float));
  } else if (form_ == TileForm::kWide) {
    std::fill_n(As<int16_t>(to), count, static_cast<int16_t>(work.zero));
  } else {
    std::memset(to, ZeroInForm(work.zero), count);
  }
}

void IntegerLayer::FillPixels(const std::byte* row, int64_t count,
                              int64_t first, const Work& work,
                              std::byte* to) const {
  const auto bring = [&](const std::byte* from, int64_t values,
                         std::byte* room) {
    if (form_ == TileForm::kFloat) {
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

void IntegerLayer::FillBand(const BandRows& rows, int64_t first,
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

void IntegerLayer::Spread(const std::byte* tile, size_t count, int64_t number,
                          int64_t channel, int64_t channels,
                          std::byte* output) const {
  const size_t size = SizeOf(epilogue_.output);
  const int64_t plane =
      window_.output[0] * window_.output[1] * window_.output[2];
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

}  // namespace rknnd::soft
