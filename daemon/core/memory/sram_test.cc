// Leases over the lives of their holders.

#include "daemon/core/memory/sram.h"

#include <random>
#include <utility>
#include <vector>

#include "daemon/core/testing/words.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rknnd::core {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(SramTest, FirstHolderTakesWhatItCanUseAndTheNextTheRest) {
  Sram sram(4 * kPage);

  const SramLease first = sram.Take(3 * kPage - 1, "a");
  const SramLease second = sram.Take(3 * kPage, "b");
  const SramLease third = sram.Take(1, "c");

  EXPECT_EQ(first.bytes(), 3 * kPage);
  EXPECT_EQ(second.bytes(), kPage);
  EXPECT_EQ(second.window().offset, 3 * kPage);
  EXPECT_EQ(third.bytes(), 0U);
  EXPECT_EQ(sram.free(), 0U);
}

TEST(SramTest, DestroyedHolderGivesItsPagesBack) {
  Sram sram(4 * kPage);
  {
    SramLease lease = sram.Take(kPage, "a");
    const SramLease moved = std::move(lease);
    EXPECT_EQ(sram.free(), 3 * kPage);
  }

  EXPECT_EQ(sram.free(), 4 * kPage);
  EXPECT_THAT(sram.windows(), IsEmpty());
}

TEST(SramTest, LeaseMayOutliveThePool) {
  SramLease lease;
  {
    Sram sram(kPage);
    lease = sram.Take(kPage, "a");
  }
  EXPECT_EQ(lease.bytes(), kPage);
}

TEST(SramTest, WholeOrNothingIsNothingWhereItDoesNotFit) {
  Sram sram(4 * kPage);
  const SramLease half = sram.Take(2 * kPage, "a");

  EXPECT_EQ(sram.TakeWhole(3 * kPage, "b").bytes(), 0U);
  EXPECT_EQ(sram.free(), 2 * kPage);
  EXPECT_EQ(sram.TakeWhole(UINT64_MAX, "b").bytes(), 0U);
  EXPECT_EQ(sram.TakeWhole(2 * kPage, "b").bytes(), 2 * kPage);
}

TEST(SramTest, HoldersAreNamedByOffset) {
  Sram sram(10 * kPage);
  const SramLease first = sram.Take(kPage, "a");
  const SramLease second = sram.Take(2 * kPage, "b");
  const SramLease third = sram.Share(3 * kPage, 2);

  const auto windows = sram.windows();

  ASSERT_THAT(windows, SizeIs(3));
  EXPECT_EQ(windows[0].holder, "a");
  EXPECT_EQ(windows[1].offset, kPage);
  EXPECT_EQ(windows[1].size, 2 * kPage);
  EXPECT_EQ(windows[2].holder, "shared, core 1");
  EXPECT_EQ(windows[2].core_mask, 2U);
  EXPECT_EQ(windows[2].contexts, 1U);
  EXPECT_EQ(windows[2].offset, 7 * kPage);
}

TEST(SramTest, SharersOfACoreTakeTurnsInOneWindow) {
  Sram sram(10 * kPage);
  const SramLease small = sram.Share(3 * kPage, 1);
  const SramLease large = sram.Share(8 * kPage, 1);

  EXPECT_EQ(small.bytes(), 3 * kPage);
  EXPECT_EQ(large.bytes(), 8 * kPage);
  EXPECT_EQ(small.window().offset, large.window().offset);
  EXPECT_EQ(sram.free(), 2 * kPage);
  ASSERT_THAT(sram.windows(), SizeIs(1));
  EXPECT_EQ(sram.windows()[0].contexts, 2U);
}

TEST(SramTest, SharedWindowShrinksWithItsLargestSharer) {
  Sram sram(10 * kPage);
  const SramLease small = sram.Share(3 * kPage, 1);
  { const SramLease large = sram.Share(8 * kPage, 1); }

  EXPECT_EQ(small.bytes(), 3 * kPage);
  EXPECT_EQ(sram.free(), 7 * kPage);
}

TEST(SramTest, SharerOfAllCoresPlansWithTheSmallestWindow) {
  Sram sram(9 * kPage);
  const SramLease core_0 = sram.Share(9 * kPage, 1);
  EXPECT_EQ(core_0.bytes(), 9 * kPage);
  const SramLease any = sram.Share(9 * kPage, 7);

  EXPECT_EQ(any.bytes(), 3 * kPage);
  EXPECT_EQ(core_0.bytes(), 3 * kPage);
}

TEST(SramTest, MoveToOneCoreNarrowsTheWindows) {
  Sram sram(9 * kPage);
  SramLease a = sram.Share(9 * kPage, 7);
  SramLease b = sram.Share(6 * kPage, 7);
  EXPECT_EQ(a.bytes(), 3 * kPage);

  a.Move(1);
  b.Move(1);

  EXPECT_EQ(a.bytes(), 9 * kPage);
  EXPECT_EQ(b.bytes(), 6 * kPage);
  EXPECT_THAT(sram.windows(), SizeIs(1));
}

TEST(SramTest, OwnWindowsStayWhereSharedOnesAreFittedAgain) {
  Sram sram(10 * kPage);
  const SramLease own = sram.Take(4 * kPage, "a");
  const SramLease shared = sram.Share(10 * kPage, 1);

  EXPECT_EQ(own.window().offset, 0U);
  EXPECT_EQ(own.bytes(), 4 * kPage);
  EXPECT_EQ(shared.bytes(), 6 * kPage);
  // A window that is shared already does not give way to one who comes late.
  EXPECT_EQ(sram.Take(kPage, "b").bytes(), 0U);
}

TEST(SramTest, SharedWindowGrowsIntoWhatAnotherGivesBack) {
  Sram sram(10 * kPage);
  SramLease own = sram.Take(4 * kPage, "a");
  const SramLease shared = sram.Share(10 * kPage, 1);

  own = SramLease();

  EXPECT_EQ(shared.bytes(), 10 * kPage);
}

TEST(SramTest, NoSramIsNoError) {
  Sram sram(0);
  SramLease shared = sram.Share(kPage, 7);
  shared.Move(1);

  EXPECT_EQ(sram.Take(kPage, "a").bytes(), 0U);
  EXPECT_EQ(shared.bytes(), 0U);
  EXPECT_THAT(sram.windows(), IsEmpty());
}

TEST(SramTest, AnyOrderOfComingMovingAndGoingLeavesNothing) {
  std::mt19937 random(5);
  Sram sram(239 * kPage);
  for (int round = 0; round < 20; ++round) {
    std::vector<SramLease> leases;
    for (int step = 0; step < 300; ++step) {
      const uint64_t bytes = 1 + random() % (100 * kPage);
      const auto cores = 1 + static_cast<uint32_t>(random() % 7);
      switch (random() % 5) {
        case 0:
          leases.push_back(sram.Take(bytes, "own"));
          break;
        case 1:
          leases.push_back(sram.Share(bytes, cores));
          break;
        case 2:
          if (!leases.empty()) leases[random() % leases.size()].Move(cores);
          break;
        default:
          if (leases.empty()) break;
          std::swap(leases[random() % leases.size()], leases.back());
          leases.pop_back();
      }
      uint64_t held = 0;
      uint64_t end = 0;
      for (const auto& window : sram.windows()) {
        ASSERT_GE(window.offset, end);
        end = window.offset + window.size;
        held += window.size;
      }
      ASSERT_LE(end, 239 * kPage);
      ASSERT_EQ(held + sram.free(), 239 * kPage);
    }
    leases.clear();
    ASSERT_EQ(sram.free(), 239 * kPage);
  }
}

// --- SRAM that holds the start of internal memory ---

TEST(RealSramTest, WindowIsWhatTheCoresArenaGot) {
  Sram sram(8 * kPage, 2 * kPage);
  sram.BackCore(0, 2 * kPage);
  sram.BackCore(2, kPage);
  const SramLease wide = sram.Share(5 * kPage, 1);
  const SramLease both = sram.Share(2 * kPage, 5);
  const SramLease none = sram.Share(kPage, 2);

  EXPECT_EQ(wide.bytes(), 2 * kPage);
  EXPECT_EQ(both.bytes(), kPage) << "the smaller one of its cores";
  EXPECT_EQ(none.bytes(), 0U);
  EXPECT_EQ(sram.free(), 5 * kPage);
  const std::vector<SramReport::Window> windows = sram.windows();
  ASSERT_THAT(windows, SizeIs(2));
  EXPECT_EQ(windows[0].holder, "internal memory, core 0");
  EXPECT_EQ(windows[0].contexts, 2U);
  EXPECT_EQ(windows[1].offset, 4 * kPage);
  EXPECT_EQ(windows[1].size, kPage);
}

TEST(RealSramTest, IsForInternalMemoryAlone) {
  Sram sram(8 * kPage, 2 * kPage);
  EXPECT_EQ(sram.Take(kPage, "a").bytes(), 0U);
  EXPECT_EQ(sram.TakeWhole(kPage, "b").bytes(), 0U);
  sram.BackCore(1, 2 * kPage);
  sram.BackCore(1, 0);
  EXPECT_EQ(sram.free(), 8 * kPage);
  EXPECT_THAT(sram.windows(), IsEmpty());
}

}  // namespace
}  // namespace rknnd::core
