#include "daemon/transport/grpc/request_budget.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace rknnd::transport {
namespace {

using ::testing::HasSubstr;
using Hold = RequestBudget::Hold;
using BudgetRoom = RequestBudget::Room;

constexpr uint64_t kBudget = 1000;
constexpr uint32_t kRequests = 8;

TEST(RequestBudgetTest, WhatARequestHoldsComesBackWhenItEnds) {
  RequestBudget budget({kBudget, kRequests});
  {
    auto hold = budget.Take("a", 300);
    ASSERT_TRUE(hold.ok());
    ASSERT_TRUE(hold->Grow(200).ok());
    EXPECT_EQ(hold->bytes(), 500U);
    EXPECT_EQ(budget.usage().bytes, 500U);
    EXPECT_EQ(budget.usage().requests, 1U);
  }
  EXPECT_EQ(budget.usage().bytes, 0U);
  EXPECT_EQ(budget.usage().requests, 0U);
}

TEST(RequestBudgetTest, APeersPartComesBackToo) {
  RequestBudget budget({kBudget, kRequests});
  const auto kept = budget.Take("a", 50);
  ASSERT_TRUE(kept.ok());
  for (int i = 0; i < 10; ++i) {
    const auto hold = budget.Take("a", 700);
    EXPECT_TRUE(hold.ok()) << hold.status();
  }
}

TEST(RequestBudgetTest, AMovedHoldIsGivenBackOnce) {
  RequestBudget budget({kBudget, kRequests});
  Hold kept;
  {
    auto hold = budget.Take("a", 300);
    ASSERT_TRUE(hold.ok());
    kept = *std::move(hold);
  }
  EXPECT_EQ(budget.usage().bytes, 300U);
  auto other = budget.Take("b", 100);
  ASSERT_TRUE(other.ok());
  kept = *std::move(other);
  EXPECT_EQ(budget.usage().bytes, 100U);
  kept.Release();
  kept.Release();
  EXPECT_EQ(budget.usage().bytes, 0U);
}

TEST(RequestBudgetTest, OnePeerGetsNoMoreThanItsPart) {
  RequestBudget budget({kBudget, kRequests});
  auto first = budget.Take("greedy", 750);
  ASSERT_TRUE(first.ok());
  const absl::Status second = budget.Take("greedy", 1).status();
  EXPECT_TRUE(absl::IsResourceExhausted(second)) << second;
  EXPECT_THAT(std::string(second.message()),
              HasSubstr("'greedy' has 1 requests with 750 bytes"));
  EXPECT_TRUE(budget.Take("other", 250).ok());
}

TEST(RequestBudgetTest, OnePeersRequestsLeaveRoomForOthers) {
  RequestBudget budget({kBudget, kRequests});
  std::vector<Hold> holds;
  for (uint32_t i = 0; i < kRequests - kRequests / 4; ++i) {
    auto hold = budget.Take("greedy", 0);
    ASSERT_TRUE(hold.ok());
    holds.push_back(*std::move(hold));
  }
  EXPECT_TRUE(absl::IsResourceExhausted(budget.Take("greedy", 0).status()));
  EXPECT_TRUE(budget.Take("other", 0).ok());
}

TEST(RequestBudgetTest, AllPeersTogetherGetNoMoreThanThereIs) {
  RequestBudget budget({kBudget, 2});
  auto first = budget.Take("a", 600);
  ASSERT_TRUE(first.ok());
  const absl::Status bytes = budget.Take("b", 401).status();
  EXPECT_TRUE(absl::IsResourceExhausted(bytes));
  EXPECT_THAT(std::string(bytes.message()), HasSubstr("400 of 1000 are free"));
  auto second = budget.Take("b", 400);
  ASSERT_TRUE(second.ok());
  const absl::Status requests = budget.Take("c", 0).status();
  EXPECT_TRUE(absl::IsResourceExhausted(requests));
  EXPECT_THAT(std::string(requests.message()), HasSubstr("grpc.requests"));
  EXPECT_EQ(budget.usage().refused, 2U);
}

TEST(RequestBudgetTest, AGrowthThatIsRefusedChangesNothing) {
  RequestBudget budget({kBudget, kRequests});
  auto hold = budget.Take("a", 10);
  ASSERT_TRUE(hold.ok());
  EXPECT_TRUE(absl::IsResourceExhausted(
      hold->Grow(std::numeric_limits<uint64_t>::max())));
  EXPECT_EQ(hold->bytes(), 10U);
  EXPECT_EQ(budget.usage().bytes, 10U);
}

TEST(RequestBudgetTest, UnreadMessagesTakeRoomAheadAndGiveTheRestBack) {
  // Three quarters are one peer's; of that a 64th is taken ahead.
  RequestBudget budget({.bytes = 256 * 1024, .requests = 100});
  constexpr uint64_t kAhead = 3 * 1024;
  EXPECT_EQ(budget.ExpectedBytes("a"), kAhead);
  Hold hold;
  ASSERT_EQ(budget.TryTake("a", 100, kAhead, &hold), BudgetRoom::kYes);
  EXPECT_EQ(budget.usage().bytes, 100 + kAhead);
  // Less than that comes out of it, more is charged.
  ASSERT_TRUE(hold.Grow(1000).ok());
  EXPECT_EQ(budget.usage().bytes, 100 + kAhead);
  ASSERT_TRUE(hold.Grow(kAhead).ok());
  EXPECT_EQ(budget.usage().bytes, 1100 + kAhead);
  hold.DropAhead();
  EXPECT_EQ(budget.usage().bytes, 1100 + kAhead);
  EXPECT_EQ(budget.usage().requests, 1U);

  Hold small;
  ASSERT_EQ(budget.TryTake("a", 100, kAhead, &small), BudgetRoom::kYes);
  ASSERT_TRUE(small.Grow(10).ok());
  small.DropAhead();
  EXPECT_EQ(budget.usage().bytes, 1100 + kAhead + 110);
  small.Release();
  hold.Release();
  EXPECT_EQ(budget.usage().bytes, 0U);
  EXPECT_EQ(budget.usage().requests, 0U);
}

TEST(RequestBudgetTest, NoMoreMessagesAreGatheredThanHaveRoom) {
  RequestBudget budget({.bytes = 256 * 1024, .requests = 1000});
  std::vector<Hold> holds;
  const uint64_t ahead = budget.ExpectedBytes("a");
  for (;;) {
    Hold hold;
    if (budget.TryTake("a", 0, ahead, &hold) != BudgetRoom::kYes) break;
    holds.push_back(std::move(hold));
  }
  EXPECT_EQ(holds.size(), 64U);
}

TEST(RequestBudgetTest, WhatIsExpectedOfAPeerIsWhatItsLastMessagesHeld) {
  RequestBudget budget({.bytes = 256 * 1024, .requests = 100});
  const uint64_t unknown = budget.ExpectedBytes("a");
  const auto kept = budget.Take("a", 1);
  const auto send = [&](uint64_t bytes) {
    auto hold = budget.Take("a", 0);
    ASSERT_TRUE(hold.ok() && hold->Grow(bytes).ok());
  };
  send(20'000);
  EXPECT_EQ(budget.ExpectedBytes("a"), 20'000U);
  EXPECT_EQ(budget.ExpectedBytes("b"), unknown);
  send(4'000);
  EXPECT_EQ(budget.ExpectedBytes("a"), 19'000U);
  for (int i = 0; i < 200; ++i) send(4'000);
  EXPECT_LT(budget.ExpectedBytes("a"), 4'100U);
  // One that ended unread tells nothing.
  { const auto unread = budget.Take("a", 50'000); }
  EXPECT_LT(budget.ExpectedBytes("a"), 4'100U);
}

TEST(RequestBudgetTest, WhoseRoomIsLackingIsTold) {
  RequestBudget budget({kBudget, kRequests});
  Hold first, second, third;
  ASSERT_EQ(budget.TryTake("a", 0, 700, &first), BudgetRoom::kYes);
  EXPECT_EQ(budget.TryTake("a", 0, 100, &second), BudgetRoom::kNotForPeer);
  ASSERT_EQ(budget.TryTake("b", 0, 250, &second), BudgetRoom::kYes);
  EXPECT_EQ(budget.TryTake("c", 0, 100, &third), BudgetRoom::kNone);
  int told = 0;
  budget.set_on_room([&told] { ++told; });
  first.Release();
  EXPECT_EQ(told, 1);
  EXPECT_EQ(budget.TryTake("c", 0, 100, &third), BudgetRoom::kYes);
  EXPECT_FALSE(budget.IsTooMuch(50, 700));
  EXPECT_TRUE(budget.IsTooMuch(51, 700));
}

TEST(RequestBudgetTest, SoManyOfAPeerAreBegunAtOnce) {
  constexpr base::Nanoseconds kWindow = 50;
  constexpr size_t kMost = RequestPace::kAtOnce;
  RequestBudget budget({kBudget, 100});
  std::vector<Hold> holds(kMost + 3);
  base::Nanoseconds now = 1000;
  const auto take = [&](const std::string& peer, size_t hold) {
    return budget.TryTake(peer, 1, 0, &holds[hold], {now, kWindow});
  };
  for (size_t i = 0; i < kMost; ++i) {
    ASSERT_EQ(take("a", i), BudgetRoom::kYes) << i;
    ++now;
  }
  EXPECT_EQ(take("a", kMost), BudgetRoom::kNotForPeer);
  // Others are not held up by it.
  EXPECT_EQ(take("b", kMost), BudgetRoom::kYes);
  // One has ended, whichever it was.
  holds[kMost / 2].Release();
  EXPECT_EQ(take("a", kMost / 2), BudgetRoom::kYes);
  EXPECT_EQ(take("a", kMost + 1), BudgetRoom::kNotForPeer);
  // The first two have been at it for longer than the window, and do not count
  // any more: nor does it make room that one of them ends.
  now = 1001 + kWindow;
  EXPECT_EQ(take("a", kMost + 1), BudgetRoom::kYes);
  EXPECT_EQ(take("a", kMost + 2), BudgetRoom::kYes);
  holds[0].Release();
  EXPECT_EQ(take("a", 0), BudgetRoom::kNotForPeer);
}

}  // namespace
}  // namespace rknnd::transport
