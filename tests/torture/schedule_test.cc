#include "tests/torture/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace rknnd::torture {
namespace {

using base::kSecond;
using ::testing::ElementsAreArray;
using ::testing::Not;

std::vector<std::string> Texts(uint64_t seed, base::Nanoseconds length) {
  std::vector<std::string> texts;
  for (const Event& event : MakeSchedule(seed, length)) {
    texts.push_back(event.ToText() + " " + std::to_string(event.dice));
  }
  return texts;
}

TEST(ScheduleTest, IsTheSeedsAndNobodyElses) {
  EXPECT_THAT(Texts(7, 60 * kSecond), ElementsAreArray(Texts(7, 60 * kSecond)));
  EXPECT_THAT(Texts(7, 60 * kSecond),
              Not(ElementsAreArray(Texts(8, 60 * kSecond))));
}

TEST(ScheduleTest, HasEveryKindInTenSeconds) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    std::set<EventKind> kinds;
    for (const Event& event : MakeSchedule(seed, 10 * kSecond)) {
      kinds.insert(event.kind);
    }
    EXPECT_EQ(kinds.size(), size_t{kEventKinds}) << "seed " << seed;
  }
}

TEST(ScheduleTest, IsOverInTimeAndInOrder) {
  for (const base::Nanoseconds length : {1 * kSecond, 30 * kSecond}) {
    const auto events = MakeSchedule(3, length);
    ASSERT_FALSE(events.empty());
    base::Nanoseconds before = 0;
    for (const Event& event : events) {
      EXPECT_GT(event.at, before);
      EXPECT_LT(event.at + event.length, length);
      before = event.at;
    }
  }
}

TEST(ScheduleTest, LeavesTheLastDaemonAlone) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    for (const Event& event : MakeSchedule(seed, 60 * kSecond)) {
      if (event.at <= 45 * kSecond) continue;
      EXPECT_NE(event.kind, EventKind::kKillDaemon) << "seed " << seed;
      EXPECT_NE(event.kind, EventKind::kRestartDaemon) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace rknnd::torture
