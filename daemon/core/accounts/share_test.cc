// Tests of what the configuration gives a process.

#include "daemon/core/accounts/share.h"

#include <map>
#include <memory>
#include <vector>

#include "daemon/core/testing/core_fixture.h"
#include "daemon/core/testing/words.h"
#include "gtest/gtest.h"

namespace rknnd::core {
namespace {

TEST(SharePolicyTest, EverybodyIsMediumUnlessConfigured) {
  EXPECT_EQ(ResolvePolicy({}, Peer(1000)),
            (SharePolicy{Priority::kMedium, 100}));
}

TEST(SharePolicyTest, UsersOwnEntryComesBeforeItsGroups) {
  SchedulingOptions options;
  options.users[1000] = {Priority::kLow, 7};
  options.groups[5] = {Priority::kHigh, 900};
  EXPECT_EQ(ResolvePolicy(options, Peer(1000, {5})),
            (SharePolicy{Priority::kLow, 7}));
}

TEST(SharePolicyTest, BestOfTheGroupsIsTakenOfEachKind) {
  SchedulingOptions options;
  options.groups[5] = {Priority::kHigh, 10};
  options.groups[6] = {Priority::kLow, 300};
  options.groups[7] = {Priority::kHigh, 9000};
  EXPECT_EQ(ResolvePolicy(options, Peer(1000, {6, 5, 8})),
            (SharePolicy{Priority::kHigh, 300}));
}

TEST(SharePolicyTest, GroupMayLowerWhatEverybodyHas) {
  SchedulingOptions options;
  options.share = {Priority::kHigh, 100};
  options.groups[5] = {Priority::kLow, 1};
  EXPECT_EQ(ResolvePolicy(options, Peer(1000, {5})),
            (SharePolicy{Priority::kLow, 1}));
}

TEST(SharePolicyTest, PriorityIsTheLowerOfAskedAndCeiling) {
  EXPECT_EQ(UnderCeiling(Priority::kHigh, Priority::kMedium),
            Priority::kMedium);
  EXPECT_EQ(UnderCeiling(Priority::kLow, Priority::kMedium), Priority::kLow);
  EXPECT_EQ(UnderCeiling(Priority::kHigh, Priority::kHigh), Priority::kHigh);
}

TEST(SharePolicyTest, WeightOfNothingIsTheLeast) {
  const Share share({Priority::kMedium, 0}, 3);
  EXPECT_EQ(share.flows[1].weight.whole(), 1U);
}

class ShareTest : public testing::CoreTest {
 protected:
  // The order in which jobs of contexts 1 reach the only core they may use.
  void MakeBusy(const testing::TestSession& session, uint32_t contexts,
                uint32_t flags = 1) {
    for (uint32_t context = 1; context <= contexts; ++context) {
      MakeReady(session, context, "bytes=16", flags, /*core_mask=*/1);
    }
  }
};

// Vendor programs all ask for HIGH, whose flag is 0.
TEST_F(ShareTest, ContextsOfAnybodyAreMediumAtMost) {
  const testing::TestSession session = Open();
  MakeReady(session, 1, "bytes=16", /*flags=*/0);
  MakeReady(session, 2, "bytes=16", /*flags=*/2);
  ASSERT_EQ(service->Contexts().size(), 2U);
  EXPECT_EQ(service->Contexts()[0].priority, Priority::kMedium);
  EXPECT_EQ(service->Contexts()[1].priority, Priority::kLow);
  EXPECT_EQ(service->Sessions()[0].share, SharePolicy{});
}

TEST_F(ShareTest, ConfiguredUserMayBeHigh) {
  StopService();
  options.scheduling.users[1000] = {Priority::kHigh, 200};
  StartService();
  const testing::TestSession session = Open(100, 1000);
  MakeReady(session, 1, "bytes=16", /*flags=*/0);
  EXPECT_EQ(service->Contexts()[0].priority, Priority::kHigh);
  EXPECT_EQ(service->Sessions()[0].share.weight, 200U);
}

// Two sessions of one process against one of another: turn by turn.
TEST_F(ShareTest, SessionsOfOneProcessCountOnce) {
  const testing::TestSession one = Open(100);
  const testing::TestSession again = Open(100);
  const testing::TestSession other = Open(200);
  for (const auto& session : {one, again, other}) MakeBusy(session, 2);
  device.HoldJobs(true);
  for (const auto& session : {one, again, other}) {
    for (uint32_t context = 1; context <= 2; ++context) {
      ASSERT_TRUE(Submit(session, context, context).ok());
    }
  }
  RunReady();
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(device.Release());
    RunReady();
  }
  // Of four begun jobs two are the other process's, which runs one or has had
  // both.
  EXPECT_GE(other.sink->count() + 1, 2U);
  EXPECT_LE(one.sink->count() + again.sink->count(), 2U);
}

TEST_F(ShareTest, ProcessesOfAUserShareItsWeight) {
  device.set_run_time(10 * base::kMillisecond);
  std::vector<testing::TestSession> crowd;
  for (int32_t pid = 1; pid <= 8; ++pid) {
    crowd.push_back(Open(pid, 1000));
    MakeBusy(crowd.back(), 1);
  }
  const testing::TestSession other = Open(100, 1001);
  MakeBusy(other, 8);
  device.HoldJobs(true);
  std::map<SessionId, size_t> asked;
  for (const testing::TestSession& one : crowd) {
    ASSERT_TRUE(Submit(one, 1, 1).ok());
    asked[one->id()] = 1;
  }
  for (uint32_t context = 1; context <= 8; ++context) {
    ASSERT_TRUE(Submit(other, context, context).ok());
  }
  RunReady();
  for (uint32_t i = 0; i < 120; ++i) {
    clock.Advance(10 * base::kMillisecond);
    const size_t before = other.sink->count();
    ASSERT_TRUE(device.Release());
    // Whoever was answered asks again.
    for (const testing::TestSession& one : crowd) {
      if (one.sink->count() == asked[one->id()]) {
        ASSERT_TRUE(Submit(one, 1, 1).ok());
        ++asked[one->id()];
      }
    }
    if (other.sink->count() > before) {
      const uint32_t slot = other.sink->last().slot;
      ASSERT_TRUE(Submit(other, slot, slot).ok());
    }
    RunReady();
  }
  // By process it would have had a ninth.
  EXPECT_NEAR(static_cast<double>(other.sink->count()), 60, 8);
}

TEST_F(ShareTest, ProcessesOfOtherNamespacesCountBySession) {
  const testing::TestSession one = Open(0);
  const testing::TestSession other = Open(0);
  MakeBusy(one, 4);
  MakeBusy(other, 1);
  device.HoldJobs(true);
  for (uint32_t context = 1; context <= 4; ++context) {
    ASSERT_TRUE(Submit(one, context, context).ok());
  }
  ASSERT_TRUE(Submit(other, 1, 1).ok());
  RunReady();
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(device.Release());
    RunReady();
  }
  EXPECT_EQ(other.sink->count(), 1U);
}

}  // namespace
}  // namespace rknnd::core
