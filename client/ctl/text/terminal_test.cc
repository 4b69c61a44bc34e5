// The parts that need no terminal; with one: rknnctl_test.cc.

#include "client/ctl/text/terminal.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace rknnd::client {
namespace {

TEST(TerminalTest, UnicodeIsKnownByTheNameOfTheCharset) {
  ::unsetenv("LC_ALL");
  ::unsetenv("LC_CTYPE");
  for (const char* locale :
       {"de_DE.UTF-8", "C.utf8", "en_US.utf-8", "C.UTF8"}) {
    ::setenv("LANG", locale, 1);
    EXPECT_TRUE(Terminal::ShowsUnicode()) << locale;
  }
  for (const char* locale : {"C", "de_DE.ISO-8859-1", ""}) {
    ::setenv("LANG", locale, 1);
    EXPECT_FALSE(Terminal::ShowsUnicode()) << locale;
  }
}

}  // namespace
}  // namespace rknnd::client
