// See conv_band.h.

#include "driver/rknpu/emulator/fast/conv_band.h"

#include <algorithm>
#include <cstring>

#include "driver/rknpu/emulator/fast/extent.h"

namespace rknnd::rknpu::fast {
namespace {

// Larger ones are left to the plain engine, which needs none.
constexpr uint64_t kMostBytes = uint64_t{1} << 28;

// The input's line or pixel that coordinate `at` of the band shows; -1: none.
int64_t Shows(int64_t at, uint32_t spread, uint32_t size) {
  if (at < 0 || at % spread != 0) return -1;
  return at / spread < size ? at / spread : -1;
}

}  // namespace

bool ConvBand::Fill(const ConvSpec& spec, Form form, const Kernels& kernels,
                    Access& access) {
  const FeatureSpec& feature = spec.feature;
  const bool image = feature.interleaved != 0;
  const uint32_t pixel_bytes = image ? feature.interleaved : kAtom;
  kernels_ = &kernels;
  surfaces_ = spec.feature_surfaces();
  const Extent extent(
      feature.base,
      {{feature.line_step, feature.height}, {feature.surface_step, surfaces_}},
      int64_t{pixel_bytes} * feature.width);
  const std::byte* const source = extent.At(feature.base, false, access);
  if (source == nullptr) return false;
  stride_x_ = spec.stride_x;
  stride_y_ = spec.stride_y;
  atom_ = AtomBytes(form);
  width_ = (spec.width - 1) * stride_x_ + spec.kernel_width;
  height_ = (spec.height - 1) * stride_y_ + spec.kernel_height;
  plane_ = size_t{width_} * height_ * atom_;
  if (plane_ * surfaces_ > kMostBytes) return false;
  values_.resize(plane_ * surfaces_);
  line_.resize(size_t{std::max(width_, feature.width)} * kAtom);
  pad_line_.resize(width_ * atom_);
  for (uint32_t s = 0; s < surfaces_; ++s) {
    if (!access.GoesOn()) return false;
    std::byte* to = values_.data() + s * plane_;
    // A line of the border, in bytes, then as the loops read it.
    for (size_t i = 0; i < size_t{width_} * kAtom; ++i) {
      line_[i] = static_cast<std::byte>(
          spec.PadOf(s * kAtom + static_cast<uint32_t>(i % kAtom)));
    }
    if (form == Form::kWide) {
      kernels.load(line_.data(), size_t{width_} * kAtom, pad_line_.data());
    } else {
      std::memcpy(pad_line_.data(), line_.data(), pad_line_.size());
    }
    for (uint32_t y = 0; y < height_; ++y, to += width_ * atom_) {
      const int64_t line =
          Shows(int64_t{y} - spec.pad_top, spec.spread_y, feature.height);
      if (line < 0) {
        std::memcpy(to, pad_line_.data(), pad_line_.size());
      } else {
        FillLine(spec,
                 source + s * feature.surface_step + line * feature.line_step,
                 to);
      }
    }
  }
  return true;
}

void ConvBand::FillLine(const ConvSpec& spec, const std::byte* from,
                        std::byte* to) {
  const FeatureSpec& feature = spec.feature;
  if (feature.interleaved != 0) {
    const size_t bytes = feature.interleaved;
    std::memset(line_.data(), 0, size_t{feature.width} * kAtom);
    for (size_t x = 0; x < feature.width; ++x) {
      for (size_t c = 0; c < bytes; ++c) line_[x * kAtom + c] = from[c];
      from += bytes;
    }
    from = line_.data();
  }
  const auto copy = [&](const std::byte* source, size_t atoms,
                        std::byte* target) {
    if (atom_ == kAtom) {
      std::memcpy(target, source, atoms * kAtom);
    } else {
      kernels_->load(source, atoms * kAtom, target);
    }
  };
  const uint32_t left = std::min(spec.pad_left, width_);
  if (spec.spread_x == 1) {
    const uint32_t shown = std::min(feature.width, width_ - left);
    std::memcpy(to, pad_line_.data(), left * atom_);
    copy(from, shown, to + left * atom_);
    const size_t behind = size_t{left} + shown;
    std::memcpy(to + behind * atom_, pad_line_.data(),
                (width_ - behind) * atom_);
    return;
  }
  std::memcpy(to, pad_line_.data(), pad_line_.size());
  for (uint32_t x = 0; x < feature.width; ++x) {
    const uint64_t at = uint64_t{x} * spec.spread_x + left;
    if (at >= width_) break;
    copy(from + size_t{x} * kAtom, 1, to + at * atom_);
  }
}

const std::vector<int32_t>& ConvBand::WindowSums(const ConvSpec& spec,
                                                 const Kernels& kernels) {
  const size_t pixels = size_t{width_} * height_;
  pixel_sums_.assign(pixels, 0);
  partial_.resize(pixels * kLanes);
  kernels.channel_sums(values_.data(), pixels, surfaces_, plane_,
                       partial_.data(), pixel_sums_.data());
  // Along the lines first, then across them.
  const size_t outputs = size_t{spec.width} * spec.height;
  window_sums_.assign(outputs, 0);
  line_sums_.assign(size_t{height_} * spec.width, 0);
  for (size_t y = 0; y < height_; ++y) {
    for (uint32_t i = 0; i < spec.kernel_width; ++i) {
      const int32_t* const from = pixel_sums_.data() + y * width_ + i;
      int32_t* const to = line_sums_.data() + y * spec.width;
      for (size_t x = 0; x < spec.width; ++x) to[x] += from[x * stride_x_];
    }
  }
  for (size_t y = 0; y < spec.height; ++y) {
    int32_t* const to = window_sums_.data() + y * spec.width;
    for (size_t j = 0; j < spec.kernel_height; ++j) {
      const int32_t* const from =
          line_sums_.data() + (y * stride_y_ + j) * spec.width;
      for (size_t x = 0; x < spec.width; ++x) to[x] += from[x];
    }
  }
  return window_sums_;
}

}  // namespace rknnd::rknpu::fast
