#include "client/target/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <thread>

namespace rknnd::client {
namespace {

TEST(LogTest, ErrorsAloneArePrintedWhenNothingIsSet) {
  EXPECT_EQ(ParseLogLevel(""), 1U);
  EXPECT_EQ(ParseLogLevel("loud"), 1U);
}

TEST(LogTest, LevelsAreZeroToFive) {
  EXPECT_EQ(ParseLogLevel("0"), 0U);
  EXPECT_EQ(ParseLogLevel("5"), 5U);
  EXPECT_EQ(ParseLogLevel("99999999999999999999"), 5U);
}

TEST(LogTest, LastErrorIsTheThreadsOwn) {
  SetLastError("f", "mine");
  std::thread([] {
    EXPECT_STREQ(LastError(), "");
    SetLastError("g", "other");
  }).join();
  EXPECT_STREQ(LastError(), "f: mine");
}

TEST(LogTest, EndlessMessageIsCut) {
  SetLastError("f", std::string(100000, 'x'));
  EXPECT_LT(strlen(LastError()), 4096U);
  EXPECT_EQ(std::string(LastError()).substr(0, 4), "f: x");
}

TEST(LogTest, WhatOthersChoseSteersNoTerminal) {
  SetLastError("f", "node '\x1b]0;mine\a' of \xff");
  EXPECT_STREQ(LastError(), "f: node '?]0;mine?' of ?");
  testing::internal::CaptureStderr();
  Log(LogLevel::kError, "node '\x1b[2J'\nrknnd: all is well");
  LogText(LogLevel::kError, "one \x1b[2J\ntwo");
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "rknnd: error: node '?[2J'?rknnd: all is well\n"
            "rknnd: error: one ?[2J\nrknnd: error: two\n");
}

TEST(LogTest, LineIsWrittenWhole) {
  testing::internal::CaptureStderr();
  Log(LogLevel::kError, "no NPU");
  Log(LogLevel::kTrace, "not to be seen");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "rknnd: error: no NPU\n");
}

}  // namespace
}  // namespace rknnd::client
