#include "client/ctl/text/table.h"

#include <gtest/gtest.h>

namespace rknnd::client {
namespace {

TEST(TableTest, ColumnsAreAlignedAndLinesEndWithText) {
  Table table({{"NAME"}, {"SIZE", Table::Align::kRight}, {"KIND"}});
  table.Add({"a", "1", ""});
  table.Add({"longer", "12345", "x"});

  EXPECT_EQ(table.ToString(),
            "NAME     SIZE  KIND\n"
            "a           1\n"
            "longer  12345  x\n");
}

TEST(TableTest, CharactersCountOnceWhateverTheirBytes) {
  Table table({{"N"}, {"X"}});
  table.Add({"\xc3\xa4", "1"});
  table.Add({"b", "2"});

  EXPECT_EQ(table.ToString(), "N  X\n\xc3\xa4  1\nb  2\n");
}

TEST(FormatTest, BytesHaveTheUnitThatFits) {
  EXPECT_EQ(FormatBytes(0), "0 B");
  EXPECT_EQ(FormatBytes(1023), "1023 B");
  EXPECT_EQ(FormatBytes(1024), "1.0 KiB");
  EXPECT_EQ(FormatBytes(1024 * 1024 - 1), "1.0 MiB");
  EXPECT_EQ(FormatBytes(13002342), "12.4 MiB");
  EXPECT_EQ(FormatBytes(uint64_t{5} << 40), "5.0 TiB");
}

TEST(FormatTest, CountsHaveTheirPlural) {
  EXPECT_EQ(FormatCount(0, "job"), "0 jobs");
  EXPECT_EQ(FormatCount(1, "job"), "1 job");
  EXPECT_EQ(FormatCount(2, "job"), "2 jobs");
}

TEST(FormatTest, TimesHaveTheUnitThatFits) {
  EXPECT_EQ(FormatMicroseconds(0), "0 us");
  EXPECT_EQ(FormatMicroseconds(850), "850 us");
  EXPECT_EQ(FormatMicroseconds(3210), "3.21 ms");
  EXPECT_EQ(FormatMicroseconds(45'678), "45.7 ms");
  EXPECT_EQ(FormatMicroseconds(12.4e6), "12.4 s");
  EXPECT_EQ(FormatMicroseconds(125e6), "2 min 5 s");
  EXPECT_EQ(FormatMicroseconds(11520e6), "3 h 12 min");
  EXPECT_EQ(FormatMicroseconds(356400e6), "4 d 3 h");
}

TEST(FormatTest, ShapesAreJoinedByX) {
  EXPECT_EQ(FormatShape({1, 3, 240, 320}), "1x3x240x320");
  EXPECT_EQ(FormatShape({}), "scalar");
}

}  // namespace
}  // namespace rknnd::client
