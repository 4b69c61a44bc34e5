#include "base/values/printable.h"

#include <gtest/gtest.h>

namespace rknnd::base {
namespace {

TEST(PrintableTest, WhatATerminalWouldObeyIsTakenAway) {
  EXPECT_EQ(Printable("a\x1b[31mb\nc\x7f"), "a?[31mb?c?");
  EXPECT_EQ(Printable("\u009b5n"), "?5n");
  EXPECT_EQ(Printable("grüß 学 🙂"), "grüß 学 🙂");
}

TEST(PrintableTest, BytesThatAreNoCharacterAreOneMarkEach) {
  EXPECT_EQ(Printable("\x9b"
                      "5n"),
            "?5n");
  EXPECT_EQ(Printable("caf\xe9"), "caf?");
  EXPECT_EQ(Printable("\xc3"), "?");
  EXPECT_EQ(Printable("\xe2\x82x"), "??x");
  // ESC, written longer than need be; a surrogate; beyond Unicode.
  EXPECT_EQ(Printable("\xc0\x9b"), "??");
  EXPECT_EQ(Printable("\xe0\x80\x9b"), "???");
  EXPECT_EQ(Printable("\xed\xa0\x80"), "???");
  EXPECT_EQ(Printable("\xf4\x90\x80\x80"), "????");
  // A lead byte swallows nothing that comes after it.
  EXPECT_EQ(Printable("\xe2\x1b[2J"), "??[2J");
}

TEST(PrintableTest, WritingIsNotTurnedAround) {
  EXPECT_EQ(Printable("a\u200eb\u200fc"), "a?b?c");
  EXPECT_EQ(Printable("\u202a\u202b\u202c\u202d\u202e."), "?????.");
  EXPECT_EQ(Printable("\u2066\u2067\u2068\u2069."), "????.");
  EXPECT_EQ(Printable("\u2013\u2070"), "\u2013\u2070");
}

TEST(PrintableTest, InPlaceTakesNoMoreRoom) {
  char text[] = "\u202eabc";
  EXPECT_EQ(std::string_view(text, MakePrintable(text, sizeof text - 1)),
            "?abc");
  EXPECT_EQ(MakePrintable(text, 0), 0U);
}

}  // namespace
}  // namespace rknnd::base
