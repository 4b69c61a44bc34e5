#include "daemon/core/sram.h"

#include <utility>

#include "gtest/gtest.h"

namespace rknnd::core {
namespace {

TEST(SramTest, FirstContextTakesWhatItCanUseAndTheNextTheRest) {
  Sram sram(4 * 4096);

  const SramLease first = sram.Take(3 * 4096 - 1);
  const SramLease second = sram.Take(3 * 4096);
  const SramLease third = sram.Take(1);

  EXPECT_EQ(first.bytes(), 3U * 4096);
  EXPECT_EQ(second.bytes(), 4096U);
  EXPECT_EQ(third.bytes(), 0U);
  EXPECT_EQ(sram.free(), 0U);
}

TEST(SramTest, DestroyedContextGivesItsSramBack) {
  Sram sram(4 * 4096);
  {
    SramLease lease = sram.Take(4096);
    const SramLease moved = std::move(lease);
    EXPECT_EQ(sram.free(), 3U * 4096);
  }

  EXPECT_EQ(sram.free(), 4U * 4096);
}

TEST(SramTest, LeaseMayOutliveThePool) {
  SramLease lease;
  {
    Sram sram(4096);
    lease = sram.Take(4096);
  }
  EXPECT_EQ(lease.bytes(), 4096U);
}

}  // namespace
}  // namespace rknnd::core
