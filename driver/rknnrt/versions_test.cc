#include "driver/rknnrt/versions.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rknnd::rknnrt {
namespace {

using ::testing::HasSubstr;

TEST(VersionsTest, FilesAndLibrariesOfTheGuidesTable) {
  const struct {
    const char *model, *library;
    bool fits;
  } cases[] = {
      {"1.2.0", "1.4.0", true},          {"1.3.4-source_code", "1.5.0", true},
      {"1.4.0", "1.5.2", false},         {"1.4.0", "1.3.0", false},
      {"1.5.0", "1.5.0 (x@y)", true},    {"1.5.0", "1.5.2", false},
      {"1.5.2", "1.5.2", true},          {"1.6.0", "1.5.2", true},
      {"1.6.0", "2.3.2 (4@2025)", true}, {"2.0.0b0", "1.6.0", false},
      {"2.1.0", "2.0.0", true},          {"2.3.2", "2.3.2", true},
  };
  for (const auto& one : cases) {
    EXPECT_EQ(WhyFileMayNotFit(one.model, one.library).empty(), one.fits)
        << one.model << " on " << one.library;
  }
}

TEST(VersionsTest, SayWhatWouldDo) {
  EXPECT_THAT(WhyFileMayNotFit("2.1.0", "1.6.0"),
              HasSubstr("made by toolkit 2.1.0, which the vendor's library "
                        "1.6.0 may not run: it takes 2.0.0 or later"));
  EXPECT_THAT(WhyFileMayNotFit("1.4.0", "2.3.2"),
              HasSubstr("it takes 1.4.0 to 1.5.0"));
}

TEST(VersionsTest, WhatIsNotKnownIsNoMatter) {
  EXPECT_EQ(WhyFileMayNotFit("", "2.3.2"), "");
  EXPECT_EQ(WhyFileMayNotFit("2.3.2", "unknown"), "");
  EXPECT_EQ(WhyDriverIsOld(""), "");
}

TEST(VersionsTest, OldDriversAreNamed) {
  EXPECT_THAT(WhyDriverIsOld("0.8.8"), HasSubstr("is 0.8.8"));
  EXPECT_EQ(WhyDriverIsOld("0.9.2"), "");
  EXPECT_EQ(WhyDriverIsOld("0.9.8"), "");
}

}  // namespace
}  // namespace rknnd::rknnrt
