// The page allocator beside a plain model of it, and how shared windows are
// cut.

#include "daemon/core/memory/sram_pages.h"

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rknnd::core {
namespace {

using ::testing::ElementsAre;

TEST(SramPagesTest, SmallestGapThatFitsIsTaken) {
  SramPages pages(20);
  const PageRun low = pages.Take(10);
  const PageRun wall = pages.Take(1);
  const PageRun middle = pages.Take(4);
  pages.Take(1);
  pages.Give(low);
  pages.Give(middle);

  EXPECT_EQ(wall, (PageRun{10, 1}));
  EXPECT_THAT(pages.Gaps(),
              ElementsAre(PageRun{0, 10}, PageRun{11, 4}, PageRun{16, 4}));
  EXPECT_EQ(pages.Take(3), (PageRun{11, 3}));
}

TEST(SramPagesTest, LargestGapIsTakenWholeWhereNoneFits) {
  SramPages pages(10);
  const PageRun first = pages.Take(2);
  pages.Take(1);
  pages.Take(4);
  pages.Give(first);

  EXPECT_EQ(pages.free(), 5U);
  EXPECT_EQ(pages.Take(5), (PageRun{7, 3}));
}

TEST(SramPagesTest, NothingIsTakenOfNothing) {
  SramPages pages(4);
  EXPECT_EQ(pages.Take(0).count, 0U);
  pages.Take(4);
  EXPECT_EQ(pages.Take(1).count, 0U);
  EXPECT_EQ(SramPages(0).Take(1).count, 0U);
}

// A string of pages is the model.
TEST(SramPagesTest, RandomUseAgreesWithAPlainModel) {
  std::mt19937 random(7);
  for (int round = 0; round < 50; ++round) {
    const size_t count = 1 + random() % 239;
    SramPages pages(count);
    std::string model(count, '.');
    std::vector<PageRun> taken;
    for (int step = 0; step < 400; ++step) {
      if (random() % 2 == 0 && !taken.empty()) {
        std::swap(taken[random() % taken.size()], taken.back());
        const PageRun run = taken.back();
        taken.pop_back();
        pages.Give(run);
        model.replace(run.first, run.count, run.count, '.');
      } else {
        const uint64_t wanted = 1 + random() % 60;
        const PageRun run = pages.Take(wanted);
        // As much as any gap allows, and nobody else's.
        uint64_t most = 0;
        for (uint64_t n = wanted; n > 0 && most == 0; --n) {
          if (model.find(std::string(n, '.')) != std::string::npos) most = n;
        }
        ASSERT_EQ(run.count, most);
        if (most == 0) continue;
        ASSERT_EQ(model.substr(run.first, run.count),
                  std::string(run.count, '.'));
        model.replace(run.first, run.count, run.count, '*');
        taken.push_back(run);
      }
      ASSERT_EQ(pages.free(), static_cast<uint64_t>(
                                  std::count(model.begin(), model.end(), '.')));
    }
    for (const PageRun& run : taken) pages.Give(run);
    EXPECT_THAT(pages.Gaps(), ElementsAre(PageRun{0, count}));
  }
}

std::vector<uint64_t> Sizes(const std::vector<PageRun>& windows) {
  std::vector<uint64_t> sizes;
  for (const PageRun& window : windows) sizes.push_back(window.count);
  return sizes;
}

TEST(FitWindowsTest, WindowIsAsLargeAsTheLargestNeedOfItsCore) {
  EXPECT_THAT(Sizes(FitWindows({{1, 100}, {1, 130}, {4, 20}}, {{0, 239}})),
              ElementsAre(130, 0, 20));
}

TEST(FitWindowsTest, WindowsLieAtTheEnd) {
  EXPECT_THAT(FitWindows({{1, 100}}, {{5, 200}}),
              ElementsAre(PageRun{105, 100}));
}

TEST(FitWindowsTest, ContextOfEachCoreHasEqualWindowsOnAll) {
  EXPECT_THAT(Sizes(FitWindows({{7, 239}}, {{0, 239}})),
              ElementsAre(79, 79, 79));
}

TEST(FitWindowsTest, LargeWindowsGiveWayFirst) {
  EXPECT_THAT(Sizes(FitWindows({{1, 200}, {2, 30}, {4, 200}}, {{0, 239}})),
              ElementsAre(105, 30, 104));
}

TEST(FitWindowsTest, WhatIsLeftGoesToWhoCanUseIt) {
  // The context of all three gains nothing by more on core 0; the other does.
  EXPECT_THAT(Sizes(FitWindows({{7, 40}, {1, 200}}, {{0, 239}})),
              ElementsAre(159, 40, 40));
}

TEST(FitWindowsTest, GapsAreUsedAsTheyAre) {
  EXPECT_THAT(Sizes(FitWindows({{1, 100}, {2, 100}}, {{0, 60}, {70, 90}})),
              ElementsAre(90, 60));
  EXPECT_THAT(Sizes(FitWindows({{3, 10}}, {})), ElementsAre(0, 0));
}

TEST(FitWindowsTest, RandomWindowsNeverMeetAndLieInGaps) {
  std::mt19937 random(11);
  for (int round = 0; round < 1000; ++round) {
    SramPages pages(1 + random() % 239);
    std::vector<PageRun> own;
    for (uint32_t i = random() % 12; i > 0; --i) {
      own.push_back(pages.Take(1 + random() % 40));
    }
    for (const PageRun& run : own) {
      if (random() % 2 == 0) pages.Give(run);
    }
    std::vector<SramNeed> needs;
    for (uint32_t i = random() % 6; i > 0; --i) {
      needs.push_back(
          {1 + static_cast<uint32_t>(random() % 7), 1 + random() % 300});
    }
    std::string map(240, '*');
    for (const PageRun& gap : pages.Gaps()) {
      map.replace(gap.first, gap.count, gap.count, '.');
    }
    const std::vector<PageRun> windows = FitWindows(needs, pages.Gaps());
    for (const PageRun& window : windows) {
      ASSERT_EQ(map.substr(window.first, window.count),
                std::string(window.count, '.'));
      map.replace(window.first, window.count, window.count, 's');
    }
    for (const SramNeed& need : needs) {
      uint64_t largest = 0;
      for (const PageRun& gap : pages.Gaps()) {
        largest = std::max(largest, gap.count);
      }
      for (uint32_t core = 0; core < 3; ++core) {
        if ((need.cores >> core & 1) == 0) continue;
        // Nobody is left out where there is a page for each core.
        if (largest < 3) continue;
        EXPECT_GT(windows[core].count, 0U);
      }
    }
  }
}

}  // namespace
}  // namespace rknnd::core
