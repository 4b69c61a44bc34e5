// See packed_weights.h.

#include "driver/soft/tiles/packed_weights.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace rknnd::soft {
namespace {

// Bytes of a channel's cell; and channels are kept in fours.
constexpr auto kCell = static_cast<int64_t>(kWeightCell);
constexpr int64_t kFour = 4;
constexpr auto kInBlock = static_cast<int64_t>(kChannelBlock);

int32_t Nearest(int32_t weight) { return std::clamp(weight, -128, 127); }

int64_t RoundUp(int64_t value, int64_t to) {
  return (value + to - 1) / to * to;
}

}  // namespace

int64_t PackedShape::cells() const {
  return (inputs * positions + cell - 1) / cell;
}

int64_t PackedShape::blocks() const {
  return (outputs + kInBlock - 1) / kInBlock;
}

int64_t PackedShape::ChannelsOf(int64_t b) const {
  return std::min(kInBlock, outputs - b * kInBlock);
}

size_t PackedShape::StepOf(int64_t b) const {
  return static_cast<size_t>(RoundUp(ChannelsOf(b), kFour) * kCell);
}

size_t PackedShape::GroupBytes() const {
  return static_cast<size_t>(RoundUp(outputs, kFour) * kCell * runs() *
                             cells());
}

size_t PackedShape::OffsetOf(int64_t group, int64_t b) const {
  return static_cast<size_t>(group) * GroupBytes() +
         static_cast<size_t>(b * kInBlock * kCell * runs() * cells());
}

int64_t RoundsOf(std::span<const int16_t> weights) {
  int64_t rounds = 1;
  for (const int16_t w : weights) {
    int32_t rest = w;
    for (int64_t n = 1; rest != Nearest(rest); ++n) {
      rest -= Nearest(rest);
      rounds = std::max(rounds, n + 1);
    }
  }
  return rounds;
}

namespace {

// Calls f(weight, round, its cell, its place in the cell) for each weight in
// each round.
template <class T, class F>
void ForEachWeight(const PackedShape& shape, std::span<const T> weights,
                   std::byte* to, F&& f) {
  const int64_t each = shape.inputs * shape.kernel;
  const int64_t once = shape.kernel / shape.positions;  // runs
  for (int64_t o = 0; o < shape.groups * shape.outputs; ++o) {
    const int64_t block = o % shape.outputs / kInBlock;
    const int64_t lane = o % shape.outputs % kInBlock;
    const size_t step = shape.StepOf(block);
    std::byte* const channel = to + shape.OffsetOf(o / shape.outputs, block) +
                               static_cast<size_t>(lane * kCell);
    const T* const from = weights.data() + o * each;
    for (int64_t run = 0; run < shape.runs(); ++run) {
      for (int64_t i = 0; i < shape.inputs * shape.positions; ++i) {
        const int64_t position =
            run % once * shape.positions + i / shape.inputs;
        const int64_t number = run * shape.cells() + i / shape.cell;
        f(from[i % shape.inputs * shape.kernel + position], run / once,
          channel + static_cast<size_t>(number) * step, i % shape.cell);
      }
    }
  }
}

}  // namespace

void PackWeights(const PackedShape& shape, std::span<const int16_t> weights,
                 std::byte* to) {
  ForEachWeight(shape, weights, to,
                [](int32_t w, int64_t round, std::byte* cell, int64_t at) {
                  for (; round > 0; --round) w -= Nearest(w);
                  cell[at] = static_cast<std::byte>(Nearest(w));
                });
}

void PackWeights(const PackedShape& shape, std::span<const float> weights,
                 std::byte* to) {
  ForEachWeight(shape, weights, to,
                [](float w, int64_t, std::byte* cell, int64_t) {
                  std::memcpy(cell, &w, sizeof w);
                });
}

size_t DepthwiseBytes(int64_t channels, int64_t kernel, int64_t repeats) {
  return static_cast<size_t>(channels * kernel * repeats) + kWeightSlack;
}

void PackDepthwise(int64_t channels, int64_t kernel, int64_t repeats,
                   std::span<const int16_t> weights, std::byte* to) {
  for (int64_t k = 0; k < kernel; ++k) {
    for (int64_t c = 0; c < channels * repeats; ++c) {
      *to++ = static_cast<std::byte>(
          weights[static_cast<size_t>(c % channels * kernel + k)]);
    }
  }
}

std::vector<int32_t> WeightSums(std::span<const int16_t> weights,
                                int64_t outputs) {
  const auto each =
      static_cast<ptrdiff_t>(weights.size()) / static_cast<ptrdiff_t>(outputs);
  std::vector<int32_t> sums;
  for (auto at = weights.begin(); at < weights.end(); at += each) {
    sums.push_back(std::accumulate(at, at + each, int32_t{0}));
  }
  return sums;
}

}  // namespace rknnd::soft
