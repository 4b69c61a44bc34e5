// See checksum.h. Each step is one-to-one in the lane and in the word, so that
// a change inside one word always changes the sum.

#include "daemon/core/models/checksum.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace rknnd::core {
namespace {

// Odd, its bits as good as random: 2^64 over the golden ratio.
constexpr uint64_t kFactor = 0x9e3779b97f4a7c15;
constexpr int kTurn = 29;

}  // namespace

void Checksum::Mix(const std::byte* blocks, size_t count) {
  std::array<uint64_t, kLanes> lanes = lanes_;
  for (; count > 0; --count, blocks += kBlock) {
    std::array<uint64_t, kLanes> words;
    std::memcpy(words.data(), blocks, kBlock);
    for (size_t i = 0; i < kLanes; ++i) {
      lanes[i] = std::rotl((lanes[i] ^ words[i]) * kFactor, kTurn);
    }
  }
  lanes_ = lanes;
}

void Checksum::Update(std::span<const std::byte> bytes) {
  size_ += bytes.size();
  if (held_ > 0) {
    const size_t taken = std::min(kBlock - held_, bytes.size());
    std::copy_n(bytes.begin(), taken, rest_.begin() + held_);
    held_ += taken;
    bytes = bytes.subspan(taken);
    if (held_ < kBlock) return;
    Mix(rest_.data(), 1);
    held_ = 0;
  }
  const size_t blocks = bytes.size() / kBlock;
  Mix(bytes.data(), blocks);
  bytes = bytes.subspan(blocks * kBlock);
  std::copy(bytes.begin(), bytes.end(), rest_.begin());
  held_ = bytes.size();
}

uint64_t Checksum::Finish() {
  std::fill(rest_.begin() + held_, rest_.end(), std::byte{0});
  Mix(rest_.data(), 1);
  uint64_t sum = size_;
  for (const uint64_t lane : lanes_) {
    sum = std::rotl((sum ^ lane) * kFactor, kTurn);
  }
  return sum ^ sum >> 32;
}

}  // namespace rknnd::core
