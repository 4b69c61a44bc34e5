#include "base/posix/latency_buckets.h"

#include <gtest/gtest.h>

#include <vector>

namespace rknnd::base {
namespace {

TEST(LatencyBucketsTest, EachTimeIsBetweenTheEdgesOfItsBucket) {
  for (Nanoseconds us = 1; us < 20'000'000; us = us + us / 7 + 1) {
    const size_t bucket = LatencyBucketOf(us * 1000);
    ASSERT_LT(bucket, kLatencyBuckets);
    EXPECT_LE(LatencyBucketBegin(bucket), static_cast<double>(us));
    if (bucket + 1 < kLatencyBuckets) {
      EXPECT_GT(LatencyBucketBegin(bucket + 1), static_cast<double>(us));
    }
  }
}

TEST(LatencyBucketsTest, TimesOutsideAreInTheFirstAndTheLast) {
  EXPECT_EQ(LatencyBucketOf(-5), 0U);
  EXPECT_EQ(LatencyBucketOf(0), 0U);
  EXPECT_EQ(LatencyBucketOf(999), 0U);
  EXPECT_EQ(LatencyBucketOf(INT64_MAX), kLatencyBuckets - 1);
}

TEST(LatencyBucketsTest, EdgesGrowByAQuarterOfAPowerOfTwo) {
  EXPECT_EQ(LatencyBucketBegin(0), 1.0);
  EXPECT_EQ(LatencyBucketBegin(4), 2.0);
  EXPECT_EQ(LatencyBucketBegin(5), 2.5);
  EXPECT_EQ(LatencyBucketBegin(40), 1024.0);
}

TEST(LatencyBucketsTest, PercentilesAreOfTheBucketThatHoldsThem) {
  std::vector<uint64_t> counts(kLatencyBuckets);
  counts[LatencyBucketOf(10 * kMillisecond)] = 98;
  counts[LatencyBucketOf(100 * kMillisecond)] = 2;

  EXPECT_NEAR(LatencyPercentile(counts, 0.5), 10'000, 1'300);
  EXPECT_NEAR(LatencyPercentile(counts, 0.99), 100'000, 15'000);
  EXPECT_GT(LatencyPercentile(counts, 1), LatencyPercentile(counts, 0.99));
}

TEST(LatencyBucketsTest, NothingCountedIsZero) {
  EXPECT_EQ(LatencyPercentile({}, 0.5), 0);
  EXPECT_EQ(LatencyPercentile(std::vector<uint64_t>(kLatencyBuckets), 0.5), 0);
}

}  // namespace
}  // namespace rknnd::base
