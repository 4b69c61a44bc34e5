#include "driver/soft/plan/arena_layout.h"

#include "gtest/gtest.h"

namespace rknnd::soft {
namespace {

TEST(ArenaLayoutTest, TrafficCountsEachReaderAndOneWriter) {
  ArenaLayout layout;
  const StorageId s = layout.Add({}, 100);
  layout.Write(s, 0);
  layout.Read(s, 1, 7);
  layout.Read(s, 2, 8);

  const ArenaPlan plan = layout.Place();

  EXPECT_EQ(plan.places[0].written, 100U);
  EXPECT_EQ(plan.places[0].read, 200U);
  EXPECT_EQ(plan.places[0].user, 7U);
  EXPECT_EQ(plan.places[0].last, 2U);
}

TEST(ArenaLayoutTest, CopyThatIsSavedIsNoTraffic) {
  ArenaLayout layout;
  const StorageId part = layout.Add({}, 64);
  const StorageId other = layout.Add({}, 64);
  const StorageId whole = layout.Add({}, 128);
  layout.Write(part, 0);
  layout.Write(other, 1);
  layout.Read(part, 2, 2);
  layout.Read(other, 2, 2);
  layout.Write(whole, 2);
  layout.Read(whole, 3, 3);
  layout.WishPart(part, whole, 0, /*joins=*/true);

  const ArenaPlan plan = layout.Place();

  ASSERT_TRUE(plan.sharing.granted[0]);
  EXPECT_EQ(plan.places[part].read, 0U);
  EXPECT_EQ(plan.places[other].read, 64U);
  EXPECT_EQ(plan.places[whole].written, 64U);
  EXPECT_EQ(plan.places[whole].read, 128U);
  EXPECT_EQ(plan.places[part].storage, plan.places[whole].storage);
  EXPECT_EQ(plan.places[part].offset, plan.places[whole].offset);
}

TEST(ArenaLayoutTest, WhatIsWrittenOverCostsNoMemory) {
  ArenaLayout layout;
  const StorageId first = layout.Add({}, 6400);
  const StorageId second = layout.Add({}, 6400);
  layout.Write(first, 0);
  layout.Read(first, 1, 1);
  layout.Write(second, 1);
  layout.Read(second, 2, 2);
  layout.WishOverwrite(second, first);

  const ArenaPlan plan = layout.Place();

  EXPECT_EQ(plan.memory.size, 6400U);
  EXPECT_EQ(plan.OffsetOf(first), plan.OffsetOf(second));
}

}  // namespace
}  // namespace rknnd::soft
