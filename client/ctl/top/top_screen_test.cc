#include "client/ctl/top/top_screen.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace rknnd::client {
namespace {

using testing::ElementsAre;

TEST(ScreenTest, LinesAreCutWhereTheScreenEnds) {
  Screen screen({.width = 12, .height = 3});
  screen.Labelled("jobs", "many of them");
  screen.Gauge("core 0", 0.5, "50 %", 4, kGreen);
  screen.Line("0123456789abcdef");
  EXPECT_EQ(screen.room(), 0U);
  screen.Line("below");
  EXPECT_EQ(screen.text(), "jobs     man\ncore 0   50 \n0123456789ab\n");
}

TEST(ScreenTest, BarTakesTheRoomThatIsLeft) {
  Screen screen({.width = 9 + 10 + 2 + 4, .unicode = false});
  screen.Gauge("core 0", 0.5, "50 %", 4, kGreen);
  EXPECT_EQ(screen.text(), "core 0   #####.....  50 %\n");
}

TEST(BarTest, FillsItsShareInEighths) {
  EXPECT_THAT((std::vector<std::string>{Bar(0, 4, true), Bar(0.5, 4, true),
                                        Bar(0.40625, 4, true), Bar(1, 4, true),
                                        Bar(7, 4, true), Bar(-1, 4, true)}),
              ElementsAre("····", "██··", "█▋··", "████", "████", "····"));
}

TEST(BarTest, IsPlainTextWhereTheTerminalIs) {
  EXPECT_EQ(Bar(0.5, 6, false), "###...");
}

}  // namespace
}  // namespace rknnd::client
