#include "base/posix/map_count.h"

#include <gtest/gtest.h>

#include "base/posix/testing/no_mappings.h"

namespace rknnd::base {
namespace {

TEST(MapCountTest, AreCountedAsTheKernelCountsThem) {
  const uint64_t most = MostMappings();
  ASSERT_GT(most, 0U);
  const uint64_t before = CountMappings();
  ASSERT_GT(before, 0U);
  {
    constexpr uint64_t kLeft = 20;
    const testing::NoMappings none(kLeft);
    EXPECT_NEAR(static_cast<double>(CountMappings()),
                static_cast<double>(most - kLeft), 4);
  }
  EXPECT_NEAR(static_cast<double>(CountMappings()), static_cast<double>(before),
              4);
}

}  // namespace
}  // namespace rknnd::base
