// Weight memory: what is equal is there once, and no more is mapped than said.

#include "driver/soft/plan/weights.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "gtest/gtest.h"

namespace rknnd::soft {
namespace {

constexpr size_t kMegabyte = size_t{1} << 20;

size_t Page() { return static_cast<size_t>(sysconf(_SC_PAGESIZE)); }

const std::byte* Fill(ModelWeights& weights, size_t size, int value) {
  auto stored = weights.Store(size, [&](std::byte* room) {
    std::fill_n(room, size, static_cast<std::byte>(value));
  });
  EXPECT_TRUE(stored.ok()) << stored.status();
  return stored.ok() ? *stored : nullptr;
}

TEST(WeightsTest, EqualContentsAreStoredOnce) {
  ModelWeights weights(4 * kMegabyte);
  const std::byte* first = Fill(weights, kMegabyte, 1);
  const std::byte* other = Fill(weights, kMegabyte, 2);

  EXPECT_EQ(Fill(weights, kMegabyte, 1), first);
  EXPECT_EQ(Fill(weights, kMegabyte, 2), other);

  ASSERT_TRUE(weights.Seal().ok());
  EXPECT_EQ(weights.size(), 2 * kMegabyte);
  EXPECT_EQ(first[kMegabyte - 1], std::byte{1});
  EXPECT_EQ(other[0], std::byte{2});
}

TEST(WeightsTest, AShorterPieceIsNotTheSame) {
  ModelWeights weights(kMegabyte);
  const std::byte* first = Fill(weights, 128, 1);

  EXPECT_NE(Fill(weights, 64, 1), first);
}

TEST(WeightsTest, AConstantAndItsCopyAreStoredOnce) {
  Constant constant;
  constant.shape = {16};
  constant.data.assign(64, std::byte{3});
  ModelWeights weights(kMegabyte);
  const std::byte* packed = Fill(weights, 64, 3);

  auto kept = weights.Keep(constant, Placement{});

  ASSERT_TRUE(kept.ok()) << kept.status();
  EXPECT_EQ(*kept, packed);
}

TEST(WeightsTest, PiecesAreAlignedAndStartAsZeros) {
  ModelWeights weights(kMegabyte);
  Fill(weights, 100, 1);
  Fill(weights, 100, 1);  // given up: its room is used again

  auto stored = weights.Store(100, [](std::byte* room) {
    EXPECT_TRUE(std::all_of(room, room + 100,
                            [](std::byte b) { return b == std::byte{0}; }));
  });

  ASSERT_TRUE(stored.ok());
  EXPECT_EQ(reinterpret_cast<uintptr_t>(*stored) % 64, 0U);
}

TEST(WeightsTest, WhatFillThrowsLeavesNothingBehind) {
  ModelWeights weights(kMegabyte);

  EXPECT_THROW((void)weights.Store(kMegabyte,
                                   [](std::byte* room) {
                                     room[0] = std::byte{1};
                                     throw std::runtime_error("no");
                                   }),
               std::runtime_error);

  ASSERT_TRUE(weights.Seal().ok());
  EXPECT_EQ(weights.size(), 0U);
}

TEST(WeightsTest, AGuessTooLargeIsGivenBack) {
  ModelWeights weights(64 * kMegabyte);
  Fill(weights, 100, 1);

  ASSERT_TRUE(weights.Seal().ok());

  EXPECT_EQ(weights.size(), Page());
}

TEST(WeightsTest, AGuessTooSmallCostsAPageForEachFurtherMapping) {
  ModelWeights weights(64);
  for (int i = 0; i < 30; ++i) Fill(weights, 100'000, i);

  ASSERT_TRUE(weights.Seal().ok());

  // Four mappings: the guess, and three of a megabyte.
  EXPECT_GE(weights.size(), 30U * 100'000);
  EXPECT_LE(weights.size(), 30U * 100'032 + 5 * Page());
}

TEST(WeightsTest, MoreThanTheAddressSpaceIsRefused) {
  ModelWeights weights(0);

  auto stored = weights.Store(ModelWeights::kMaxBytes + 1, [](std::byte*) {});

  EXPECT_EQ(stored.status().code(), absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace rknnd::soft
