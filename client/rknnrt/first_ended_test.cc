// Which of a queue's runs is given next, when runs end as they are looked at.

#include "client/rknnrt/first_ended.h"

#include <set>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rknnd::client {
namespace {

struct Frame {
  int number;
  int context;
};

bool Together(const Frame& a, const Frame& b) { return a.context == b.context; }

// Ends `later` as soon as it is asked about `last`.
struct EndsMeanwhile {
  std::set<int>& ended;
  int last;
  std::set<int> later;
  bool operator()(const Frame& run) const {
    const bool has = ended.contains(run.number);
    if (run.number == last) ended.insert(later.begin(), later.end());
    return has;
  }
};

TEST(FirstEndedTest, OfRunsThatEndWhileTheyAreLookedAtTheFirstIsFirst) {
  const std::vector<Frame> runs = {{137, 1}, {138, 1}, {139, 1}, {140, 1}};
  std::set<int> ended;
  // 137 and 138 end just after 138 was found on its way.
  const auto first =
      FirstEnded(runs.begin(), runs.end(),
                 EndsMeanwhile{ended, 138, {137, 138, 139}}, Together);
  EXPECT_EQ(first->number, 137);
}

TEST(FirstEndedTest, WhatHasNotEndedKeepsNothingBack) {
  const std::vector<Frame> runs = {{1, 1}, {2, 2}, {3, 1}};
  std::set<int> ended = {3};
  const auto look = [&](const Frame& run) {
    return ended.contains(run.number);
  };
  EXPECT_EQ(FirstEnded(runs.begin(), runs.end(), look, Together)->number, 3);
  ended.clear();
  EXPECT_EQ(FirstEnded(runs.begin(), runs.end(), look, Together), runs.end());
}

TEST(FirstEndedTest, RunsOfAnotherContextMayEndInAnyOrder) {
  const std::vector<Frame> runs = {{1, 1}, {2, 2}};
  std::set<int> ended = {2};
  const auto first = FirstEnded(runs.begin(), runs.end(),
                                EndsMeanwhile{ended, 1, {1}}, Together);
  EXPECT_EQ(first->number, 2);
}

}  // namespace
}  // namespace rknnd::client
