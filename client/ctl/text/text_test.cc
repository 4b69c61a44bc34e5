#include "client/ctl/text/text.h"

#include <gtest/gtest.h>

namespace rknnd::client {
namespace {

TEST(WidthTest, IsInColumns) {
  EXPECT_EQ(Width(""), 0U);
  EXPECT_EQ(Width("abc"), 3U);
  EXPECT_EQ(Width("ü"), 1U);
  EXPECT_EQ(Width("e\u0301"), 1U);
  EXPECT_EQ(Width("学"), 2U);
  EXPECT_EQ(Width(Printable("caf\xe9")), 4U);
}

TEST(CutTest, KeepsWholeCharacters) {
  EXPECT_EQ(Cut("grüß", 3), "grü");
  EXPECT_EQ(Cut("grüß", 4), "grüß");
  EXPECT_EQ(Cut("grüß", 0), "");
  EXPECT_EQ(Cut("学学", 3), "学");
  EXPECT_EQ(Cut("e\u0301f", 1), "e\u0301");
}

}  // namespace
}  // namespace rknnd::client
