// Tests of texts on their way into protobuf's strings and metrics' labels.

#include "daemon/core/terms/utf8.h"

#include "gtest/gtest.h"

namespace rknnd::core {
namespace {

TEST(Utf8Test, CharactersStay) {
  for (const char* text : {"", "conv1", "Größe", "层", "\U0001F600"}) {
    EXPECT_EQ(Utf8(text), text);
  }
}

TEST(Utf8Test, OtherBytesAreReplacedOneByOne) {
  EXPECT_EQ(Utf8("a\xFFz"), "a?z");
  EXPECT_EQ(Utf8("\x80\xBF"), "??");
  EXPECT_EQ(Utf8("cut \xE5\xB1"), "cut ??");
  EXPECT_EQ(Utf8("\xC0\xAF"), "??");            // '/' in two bytes
  EXPECT_EQ(Utf8("\xED\xA0\x80"), "???");       // half of a pair
  EXPECT_EQ(Utf8("\xF4\x90\x80\x80"), "????");  // above the last
  EXPECT_EQ(Utf8("\xF0\x8F\xBF\xBF"), "????");
}

}  // namespace
}  // namespace rknnd::core
