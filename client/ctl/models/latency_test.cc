#include "client/ctl/models/latency.h"

#include <gtest/gtest.h>

#include <limits>
#include <memory>

namespace rknnd::client {
namespace {

TEST(LatencyTest, NothingSeenIsZero) {
  const auto latency = std::make_unique<Latency>();

  EXPECT_EQ(latency->MeanMicroseconds(), 0);
  EXPECT_EQ(latency->PercentileMicroseconds(0.5), 0);
}

TEST(LatencyTest, PercentilesAreWithinABucketOfTheTruth) {
  const auto latency = std::make_unique<Latency>();
  for (uint64_t us = 1; us <= 10000; ++us) latency->Add(us * 1000);

  EXPECT_NEAR(latency->PercentileMicroseconds(0.5), 5000, 5000.0 / 64);
  EXPECT_NEAR(latency->PercentileMicroseconds(0.9), 9000, 9000.0 / 64);
  EXPECT_NEAR(latency->PercentileMicroseconds(0.99), 9900, 9900.0 / 64);
  EXPECT_DOUBLE_EQ(latency->MeanMicroseconds(), 5000.5);
  EXPECT_DOUBLE_EQ(latency->MaxMicroseconds(), 10000);
}

TEST(LatencyTest, NoPercentileIsAboveTheLargestValue) {
  const auto latency = std::make_unique<Latency>();
  latency->Add(1'000'001);

  EXPECT_LE(latency->PercentileMicroseconds(1), latency->MaxMicroseconds());
  EXPECT_NEAR(latency->PercentileMicroseconds(0), 1000, 1000.0 / 64);
}

TEST(LatencyTest, ExtremeValuesHaveABucket) {
  const auto latency = std::make_unique<Latency>();
  latency->Add(0);
  latency->Add(63);
  latency->Add(64);
  latency->Add(std::numeric_limits<uint64_t>::max());

  EXPECT_EQ(latency->count(), 4U);
  EXPECT_DOUBLE_EQ(latency->PercentileMicroseconds(0.5), 0.063);
}

TEST(LatencyTest, ThreadsAddUp) {
  const auto a = std::make_unique<Latency>();
  const auto b = std::make_unique<Latency>();
  a->Add(1000);
  b->Add(3000);
  a->Add(*b);

  EXPECT_EQ(a->count(), 2U);
  EXPECT_DOUBLE_EQ(a->MeanMicroseconds(), 2);
  EXPECT_DOUBLE_EQ(a->MaxMicroseconds(), 3);
}

}  // namespace
}  // namespace rknnd::client
