// See conv_weights.h.

#include "driver/rknpu/emulator/fast/conv_weights.h"

#include <algorithm>
#include <cstring>

namespace rknnd::rknpu::fast {
namespace {

constexpr uint32_t kGroup = 32;  // kernels, and channels, that lie together
constexpr uint32_t kDepthwiseGroup = 64;

// Four bytes of a kernel's channels as a cell, or two.
void PackCells(const int8_t* from, uint32_t channels, const Kernels& kernels,
               std::byte* to) {
  const size_t step = kernels.block * 4;
  if (kernels.form == Form::kWide) {
    for (uint32_t c = 0; c < channels; c += 2, to += step) {
      const int16_t cell[2] = {from[c], from[c + 1]};
      std::memcpy(to, cell, sizeof(cell));
    }
    return;
  }
  const uint32_t turned = kernels.form == Form::kUnsigned ? 0x80808080U : 0;
  for (uint32_t c = 0; c < channels; c += 4, to += step) {
    uint32_t cell;
    std::memcpy(&cell, from + c, sizeof(cell));
    cell ^= turned;
    std::memcpy(to, &cell, sizeof(cell));
  }
}

}  // namespace

bool ConvWeights::Pack(const ConvSpec& spec, const Kernels& kernels,
                       const Access& access) {
  const uint32_t channels = spec.feature.channels;
  const uint64_t bytes = uint64_t{spec.taps()} * channels * spec.kernels;
  const std::byte* const from =
      access.Whole(static_cast<int64_t>(spec.weights), bytes, false);
  if (from == nullptr) return false;
  const bool same = loops_ == &kernels && kernels_ == spec.kernels &&
                    channels_ == channels && taps_ == spec.taps() &&
                    stored_.size() == bytes &&
                    std::memcmp(stored_.data(), from, bytes) == 0;
  if (same) return true;
  stored_.assign(from, from + bytes);
  loops_ = &kernels;
  kernels_ = spec.kernels;
  channels_ = channels;
  taps_ = spec.taps();
  block_bytes_ =
      size_t{taps_} * channels * kernels.block * ValueBytes(kernels.form);
  const size_t blocks = (spec.kernels + kernels.block - 1) / kernels.block;
  // Kernels that a block has too many weigh nothing.
  const std::byte nothing =
      kernels.form == Form::kUnsigned ? std::byte{0x80} : std::byte{0};
  packed_.assign(blocks * block_bytes_, nothing);
  PackRuns(spec, kernels);
  return true;
}

void ConvWeights::PackRuns(const ConvSpec& spec, const Kernels& kernels) {
  const size_t value_bytes = ValueBytes(kernels.form);
  const auto* from = reinterpret_cast<const int8_t*>(stored_.data());
  for (uint32_t o0 = 0; o0 < spec.kernels; o0 += kGroup) {
    const uint32_t some = std::min(kGroup, spec.kernels - o0);
    for (uint32_t c0 = 0; c0 < channels_; c0 += kGroup) {
      const uint32_t together = std::min(kGroup, channels_ - c0);
      for (uint32_t tap = 0; tap < taps_; ++tap) {
        for (uint32_t o = o0; o < o0 + some; ++o) {
          std::byte* const to =
              packed_.data() + o / kernels.block * block_bytes_ +
              (size_t{tap} * channels_ + c0) * kernels.block * value_bytes +
              o % kernels.block * 4;
          PackCells(from, together, kernels, to);
          from += together;
        }
      }
    }
  }
}

bool ReadDepthwiseWeights(const ConvSpec& spec, const Access& access,
                          std::vector<int32_t>& weights) {
  const uint32_t channels = spec.feature.channels, taps = spec.taps();
  const uint32_t rest = channels % kDepthwiseGroup;
  const uint32_t stored =
      channels - rest + (rest > 32 ? kDepthwiseGroup : rest);
  const std::byte* from = access.Whole(static_cast<int64_t>(spec.weights),
                                       uint64_t{stored} * taps, false);
  if (from == nullptr) return false;
  weights.assign(size_t{taps} * channels, 0);
  for (uint32_t c0 = 0; c0 < channels; c0 += kDepthwiseGroup) {
    const uint32_t group = std::min(kDepthwiseGroup, stored - c0);
    for (uint32_t tap = 0; tap < taps; ++tap, from += group) {
      for (uint32_t c = c0; c < std::min(channels, c0 + group); ++c) {
        weights[(size_t{c} / kLanes * taps + tap) * kLanes + c % kLanes] =
            static_cast<int8_t>(from[c - c0]);
      }
    }
  }
  return true;
}

}  // namespace rknnd::rknpu::fast
