// Tests of the checksum: one answer however the bytes come, another for other
// bytes.

#include "daemon/core/models/checksum.h"

#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace rknnd::core {
namespace {

uint64_t SumOf(std::span<const std::byte> bytes) {
  Checksum sum;
  sum.Update(bytes);
  return sum.Finish();
}

std::vector<std::byte> Noise(size_t size) {
  std::mt19937 random(5);
  std::vector<std::byte> bytes(size);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

TEST(ChecksumTest, IsTheSameInPiecesOfAnySize) {
  const std::vector<std::byte> bytes = Noise(1000);
  for (size_t piece = 1; piece < 300; ++piece) {
    Checksum sum;
    for (size_t at = 0; at < bytes.size(); at += piece) {
      sum.Update(
          std::span(bytes).subspan(at, std::min(piece, bytes.size() - at)));
    }
    EXPECT_EQ(sum.Finish(), SumOf(bytes)) << piece;
  }
}

TEST(ChecksumTest, EveryBitCounts) {
  std::vector<std::byte> bytes = Noise(200);
  const uint64_t sum = SumOf(bytes);
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    const auto flip = static_cast<std::byte>(1U << bit % 8);
    bytes[bit / 8] ^= flip;
    EXPECT_NE(SumOf(bytes), sum) << bit;
    bytes[bit / 8] ^= flip;
  }
}

TEST(ChecksumTest, LengthCountsEvenInZeros) {
  const std::vector<std::byte> zeros(300);
  for (size_t size = 1; size < zeros.size(); ++size) {
    EXPECT_NE(SumOf(std::span(zeros).first(size)),
              SumOf(std::span(zeros).first(size - 1)));
  }
}

TEST(ChecksumTest, OrderCounts) {
  std::vector<std::byte> bytes = Noise(512);
  const uint64_t sum = SumOf(bytes);
  std::swap_ranges(bytes.begin(), bytes.begin() + 64, bytes.begin() + 64);
  EXPECT_NE(SumOf(bytes), sum);
}

}  // namespace
}  // namespace rknnd::core
