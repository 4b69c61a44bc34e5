// Tests of the log's followers: lines kept, lines lost, nobody held up.

#include "daemon/board/log_tail.h"

#include <gmock/gmock.h>

#include <memory>
#include <string>
#include <vector>

#include "daemon/core/testing/core_fixture.h"
#include "daemon/transport/session/testing/recorded_lines.h"
#include "gtest/gtest.h"

namespace rknnd::board {
namespace {

using transport::testing::RecordedLines;

using core::testing::ManualExecutor;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using transport::LogFollower;
using transport::LogLine;
using transport::Severity;

class LogTailTest : public ::testing::Test {
 protected:
  std::unique_ptr<LogFollower> Follow(uint32_t level, uint32_t recent) {
    return tail_.Follow(&loop_, level, recent, [this](const LogLine& line) {
      if (deaf_) return false;
      taken_.push_back(line);
      return true;
    });
  }
  void RunLoop() {
    while (loop_.RunOne()) {
    }
  }
  [[nodiscard]] std::vector<std::string> Texts() const {
    std::vector<std::string> texts;
    for (const LogLine& line : taken_) texts.push_back(line.text);
    return texts;
  }

  RecordedLines stderr_;
  LogTail tail_{&stderr_, /*level=*/2, [] { return uint64_t{7}; }};
  ManualExecutor loop_;
  std::vector<LogLine> taken_;
  bool deaf_ = false;
};

TEST_F(LogTailTest, WhatALineIsAboutGoesOnAndFollowersGetItsText) {
  const auto follower = Follow(5, 0);
  core::EventFields fields;
  fields.session = 7;
  tail_.WriteEvent(Severity::kWarning, "about 7", fields);
  tail_.Write(Severity::kWarning, "about nothing");
  RunLoop();
  ASSERT_EQ(stderr_.events.size(), 2U);
  EXPECT_EQ(stderr_.events[0].session, 7U);
  EXPECT_EQ(stderr_.events[1].session, 0U);
  EXPECT_THAT(Texts(), ElementsAre("about 7", "about nothing"));
}

TEST_F(LogTailTest, LinesGoOnUpToTheLevel) {
  tail_.Write(Severity::kInfo, "note");
  tail_.Write(Severity::kDebug, "detail");
  EXPECT_EQ(tail_.SetLevel(3), 2U);
  tail_.Write(Severity::kDebug, "detail after");
  EXPECT_EQ(tail_.SetLevel(0), 3U);
  tail_.Write(Severity::kWarning, "warning");
  EXPECT_THAT(stderr_.lines, ElementsAre("note", "detail after"));
}

TEST_F(LogTailTest, FollowerGetsTheLastLinesThenEachNewOne) {
  for (int i = 0; i < 5; ++i) {
    tail_.Write(Severity::kInfo, "old " + std::to_string(i));
  }
  const auto follower = Follow(2, 2);
  tail_.Write(Severity::kError, "new");
  RunLoop();
  EXPECT_THAT(Texts(), ElementsAre("old 3", "old 4", "new"));
  EXPECT_EQ(taken_[2].level, 0U);
  EXPECT_EQ(taken_[2].time_ns, 7U);
  EXPECT_EQ(taken_[2].lost, 0U);
}

TEST_F(LogTailTest, FollowersLevelIsItsOwn) {
  tail_.SetLevel(0);
  const auto follower = Follow(3, 0);
  tail_.Write(Severity::kDebug, "detail");
  RunLoop();
  EXPECT_THAT(Texts(), ElementsAre("detail"));
  EXPECT_THAT(stderr_.lines, IsEmpty());
}

TEST_F(LogTailTest, SlowFollowerLosesLinesAndHearsHowMany) {
  const auto follower = Follow(2, 0);
  for (size_t i = 0; i < LogTail::kKept + 10; ++i) {
    tail_.Write(Severity::kInfo, "line");
  }
  RunLoop();
  EXPECT_THAT(taken_, SizeIs(LogTail::kKept));
  tail_.Write(Severity::kInfo, "after");
  RunLoop();
  EXPECT_EQ(taken_.back().text, "after");
  EXPECT_EQ(taken_.back().lost, 10U);
}

TEST_F(LogTailTest, LinesThatAreNotTakenAreCounted) {
  const auto follower = Follow(2, 0);
  deaf_ = true;
  tail_.Write(Severity::kInfo, "a");
  tail_.Write(Severity::kInfo, "b");
  RunLoop();
  deaf_ = false;
  tail_.Write(Severity::kInfo, "c");
  tail_.Write(Severity::kInfo, "d");
  RunLoop();
  EXPECT_THAT(Texts(), ElementsAre("c", "d"));
  EXPECT_EQ(taken_[0].lost, 2U);
  EXPECT_EQ(taken_[1].lost, 0U);
}

TEST_F(LogTailTest, NothingComesAfterTheEnd) {
  auto follower = Follow(2, 0);
  tail_.Write(Severity::kInfo, "on its way");
  follower.reset();
  tail_.Write(Severity::kInfo, "later");
  RunLoop();
  EXPECT_THAT(Texts(), IsEmpty());
}

TEST_F(LogTailTest, LongLineIsCut) {
  const auto follower = Follow(2, 0);
  tail_.Write(Severity::kInfo, std::string(100'000, 'x'));
  RunLoop();
  EXPECT_EQ(taken_[0].text.size(), LogTail::kLongestLine);
}

}  // namespace
}  // namespace rknnd::board
