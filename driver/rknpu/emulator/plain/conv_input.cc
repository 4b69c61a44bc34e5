// See conv_input.h.

#include "driver/rknpu/emulator/plain/conv_input.h"

#include <algorithm>
#include <cstring>

#include "driver/rknpu/emulator/plain/stages.h"

namespace rknnd::rknpu {
namespace {

constexpr uint16_t kFeatureAddress = 0x1070, kWeightAddress = 0x1110;

template <Precision P>
void Load(const std::byte* from, size_t count, typename Numbers<P>::Value* to) {
  if constexpr (P == Precision::kInt8) {
    std::memcpy(to, from, count);
  } else {
    for (size_t i = 0; i < count; ++i) {
      uint16_t half;
      std::memcpy(&half, from + i * sizeof(half), sizeof(half));
      to[i] = static_cast<float>(FromHalf(half));
    }
  }
}

}  // namespace

template <Precision P>
ConvInput<P>::ConvInput(const ConvSpec& spec, Access& access) : spec_(spec) {
  ReadFeature(access);
  if (!access.ok()) return;
  spec.depthwise ? ReadDepthwise(access) : ReadWeights(access);
  for (uint32_t c = 0; c < spec.feature.channels; ++c) {
    pad_.push_back(P == Precision::kInt8 ? static_cast<Value>(spec.PadOf(c))
                                         : Value{0});
  }
}

template <Precision P>
void ConvInput<P>::ReadFeature(Access& access) {
  const FeatureSpec& feature = spec_.feature;
  feature_.assign(size_t{feature.width} * feature.height * feature.channels,
                  Value{0});
  const uint32_t per_atom = ChannelsPerAtom(P);
  const uint32_t surfaces =
      feature.interleaved != 0 ? 1 : feature.channels / per_atom;
  const uint32_t count =
      feature.interleaved != 0 ? feature.interleaved : per_atom;
  const uint64_t size = uint64_t{count} * BytesOf(P);
  for (uint32_t s = 0; s < surfaces; ++s) {
    for (uint32_t y = 0; y < feature.height && access.GoesOn(); ++y) {
      const uint64_t line =
          feature.base + static_cast<uint64_t>(s * feature.surface_step +
                                               y * feature.line_step);
      Value* to = feature_.data() +
                  size_t{y} * feature.width * feature.channels +
                  size_t{s} * per_atom;
      for (uint32_t x = 0; x < feature.width; ++x) {
        const std::byte* from =
            access.Read(line + x * size, size, kFeatureAddress);
        if (from == nullptr) return;
        Load<P>(from, count, to);
        to += feature.channels;
      }
    }
  }
}

// Groups of kernels, in them groups of 32 channels, in them taps, kernels,
// channels.
template <Precision P>
void ConvInput<P>::ReadWeights(Access& access) {
  constexpr uint32_t kKernels = P == Precision::kInt8 ? 32 : 16;
  constexpr uint32_t kChannels = 32;
  const uint32_t channels = spec_.feature.channels;
  weights_.assign(size_t{spec_.kernels} * window_size(), Value{0});
  const std::byte* from =
      access.Read(spec_.weights, weights_.size() * BytesOf(P), kWeightAddress);
  if (from == nullptr) return;
  for (uint32_t o0 = 0; o0 < spec_.kernels; o0 += kKernels) {
    const uint32_t some = std::min(kKernels, spec_.kernels - o0);
    for (uint32_t c0 = 0; c0 < channels; c0 += kChannels) {
      const uint32_t together = std::min(kChannels, channels - c0);
      for (uint32_t tap = 0; tap < spec_.taps(); ++tap) {
        for (uint32_t o = o0; o < o0 + some; ++o) {
          Load<P>(from, together,
                  weights_.data() + size_t{o} * window_size() +
                      size_t{tap} * channels + c0);
          from += size_t{together} * BytesOf(P);
        }
      }
    }
  }
}

// Groups of 64 channels, in them taps; the last group has 16, 32 or 64.
template <Precision P>
void ConvInput<P>::ReadDepthwise(Access& access) {
  constexpr uint32_t kGroup = 64;
  const uint32_t channels = spec_.feature.channels;
  weights_.assign(window_size(), Value{0});
  uint64_t at = spec_.weights;
  for (uint32_t c0 = 0; c0 < channels; c0 += kGroup) {
    const uint32_t some = std::min(kGroup, channels - c0);
    const uint32_t stored = some > 32 ? kGroup : some;
    const uint64_t bytes = uint64_t{stored} * spec_.taps();
    const std::byte* from = access.Read(at, bytes, kWeightAddress);
    if (from == nullptr) return;
    for (uint32_t tap = 0; tap < spec_.taps(); ++tap) {
      Load<P>(from + size_t{tap} * stored, some,
              weights_.data() + size_t{tap} * channels + c0);
    }
    at += bytes;
  }
}

template <Precision P>
int64_t ConvInput<P>::Meets(int64_t at, uint32_t spread, uint32_t size) {
  if (at < 0 || at % spread != 0) return -1;
  return at / spread < size ? at / spread : -1;
}

template <Precision P>
void ConvInput<P>::Window(uint32_t y, uint32_t x, Value* window) const {
  const FeatureSpec& feature = spec_.feature;
  const size_t bytes = feature.channels * sizeof(Value);
  for (uint32_t j = 0; j < spec_.kernel_height; ++j) {
    const int64_t line = Meets(int64_t{y} * spec_.stride_y + j - spec_.pad_top,
                               spec_.spread_y, feature.height);
    for (uint32_t i = 0; i < spec_.kernel_width; ++i) {
      const int64_t pixel =
          Meets(int64_t{x} * spec_.stride_x + i - spec_.pad_left,
                spec_.spread_x, feature.width);
      const Value* from =
          line < 0 || pixel < 0
              ? pad_.data()
              : feature_.data() +
                    static_cast<size_t>(line * feature.width + pixel) *
                        feature.channels;
      std::memcpy(window, from, bytes);
      window += feature.channels;
    }
  }
}

template class ConvInput<Precision::kInt8>;
template class ConvInput<Precision::kHalf>;

}  // namespace rknnd::rknpu
