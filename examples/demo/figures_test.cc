#include "examples/demo/figures.h"

#include <gtest/gtest.h>

namespace rknnd::demo {
namespace {

TEST(FiguresTest, PercentilesAreValuesOfTheList) {
  EXPECT_EQ(Percentile({}, 0.5), 0);
  EXPECT_EQ(Percentile({3}, 0.99), 3);
  EXPECT_EQ(Percentile({4, 1, 3, 2}, 0.5), 2);
  EXPECT_EQ(Percentile({4, 1, 3, 2}, 1), 4);
  EXPECT_EQ(Percentile({4, 1, 3, 2}, 0), 1);
}

TEST(FiguresTest, FiguresGoThroughALine) {
  StreamFigures figures;
  figures.frames = 2;
  figures.fps = 1.5;
  figures.rate = 2;
  figures.lost = 1;
  figures.latencies_us = {10, 20};
  figures.boxes = 3;
  figures.done = true;
  figures.copied_bytes = 4;
  figures.picture = "a.png";
  const auto read = ToStreamFigures(ToJson(figures).dump());
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(ToJson(*read), ToJson(figures));
}

TEST(FiguresTest, LatenciesOfAllLinesAreKept) {
  StreamFigures so_far;
  StreamFigures line;
  line.frames = 2;
  line.latencies_us = {10, 20};
  Continue(so_far, line);
  line.frames = 3;
  line.latencies_us = {30};
  line.done = true;
  Continue(so_far, line);
  EXPECT_EQ(so_far.latencies_us, (std::vector<double>{10, 20, 30}));
  EXPECT_EQ(so_far.frames, 3U);
  EXPECT_TRUE(so_far.done);
}

TEST(FiguresTest, LinesThatAreNoneAreSeen) {
  EXPECT_FALSE(ToStreamFigures("").has_value());
  EXPECT_FALSE(ToStreamFigures("{}").has_value());
  EXPECT_FALSE(ToStreamFigures(R"({"frames":"many"})").has_value());
}

}  // namespace
}  // namespace rknnd::demo
