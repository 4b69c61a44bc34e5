#include "daemon/core/accounts/job_quota.h"

#include <string>
#include <thread>
#include <vector>

#include "daemon/core/testing/core_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rknnd::core {
namespace {

using ::testing::HasSubstr;

TEST(JobQuotaTest, WithoutALimitThereMayBeAny) {
  const auto quota = JobQuota::Create("user 7");
  const auto member = quota->Join("session 1");
  for (int i = 0; i < 1000; ++i) ASSERT_TRUE(member->Take(false));
  EXPECT_EQ(quota->jobs(), 1000U);
  for (int i = 0; i < 1000; ++i) member->GiveBack();
  EXPECT_EQ(quota->jobs(), 0U);
}

TEST(JobQuotaTest, LimitIsThatOfAllMembersTogether) {
  const auto quota = JobQuota::Create("user 7");
  quota->SetLimit(3, "limits.user.queue");
  const auto one = quota->Join("session 1");
  const auto other = quota->Join("session 2");
  EXPECT_TRUE(one->Take(false));
  EXPECT_TRUE(other->Take(false));
  EXPECT_TRUE(other->Take(false));
  EXPECT_FALSE(one->Take(false));
  EXPECT_EQ(std::string(one->Refusal().message()),
            "user 7 has 3 jobs in flight, its limit 'limits.user.queue' is 3; "
            "the largest holders: session 2 with 2, session 1 with 1. Wait for "
            "runs to end before the next, or raise the limit");
  EXPECT_TRUE(absl::IsResourceExhausted(one->Refusal()));
  other->GiveBack();
  EXPECT_TRUE(one->Take(false));
}

TEST(JobQuotaTest, OneThatReplacesAnotherMayBeBeyondTheLimit) {
  const auto quota = JobQuota::Create("user 7");
  quota->SetLimit(1, "limits.user.queue");
  const auto member = quota->Join("session 1");
  ASSERT_TRUE(member->Take(false));
  EXPECT_TRUE(member->Take(true));
  member->GiveBack();
  EXPECT_FALSE(member->Take(false));
}

TEST(JobQuotaTest, LoweredLimitTakesNothingAway) {
  const auto quota = JobQuota::Create("user 7");
  const auto member = quota->Join("session 1");
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(member->Take(false));
  quota->SetLimit(2, "limits.users.queue");
  EXPECT_EQ(quota->jobs(), 4U);
  EXPECT_FALSE(member->Take(false));
  for (int i = 0; i < 3; ++i) member->GiveBack();
  EXPECT_TRUE(member->Take(false));
  EXPECT_FALSE(member->Take(false));
  quota->SetLimit(0, "limits.user.queue");
  EXPECT_TRUE(member->Take(false));
}

TEST(JobQuotaTest, WhoHasLeftIsNotNamed) {
  const auto quota = JobQuota::Create("user 7");
  quota->SetLimit(1, "limits.user.queue");
  const auto stays = quota->Join("session 1");
  {
    const auto goes = quota->Join("session 2");
    ASSERT_TRUE(goes->Take(false));
    goes->GiveBack();
  }
  ASSERT_TRUE(stays->Take(false));
  EXPECT_THAT(std::string(stays->Refusal().message()),
              HasSubstr("holders: session 1 with 1."));
}

TEST(JobQuotaTest, ThreadsNeverHaveMoreThanTheLimitTogether) {
  const auto quota = JobQuota::Create("user 7");
  quota->SetLimit(3, "limits.user.queue");
  std::atomic<uint32_t> inside{0};
  std::atomic<bool> beyond{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, member = quota->Join("session")] {
      for (int i = 0; i < 20'000; ++i) {
        if (!member->Take(false)) continue;
        if (++inside > 3) beyond = true;
        --inside;
        member->GiveBack();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(beyond);
  EXPECT_EQ(quota->jobs(), 0U);
}

// ---- by the gates -----------------------------------------------------------

class QueueLimitTest : public testing::CoreTest {
 protected:
  QueueLimitTest() {
    StopService();
    options.user_limits.queue = 3;
    StartService();
    device.HoldJobs(true);
  }
  ~QueueLimitTest() override { device.HoldJobs(false); }

  static absl::Status LastOf(const testing::TestSession& session) {
    return session.sink->all().back().status;
  }
};

TEST_F(QueueLimitTest, JobsOfAllSessionsOfAUserCount) {
  const testing::TestSession one = Open(1);
  const testing::TestSession other = Open(2);
  const testing::TestSession client = Open(3, /*uid=*/1001);
  for (const auto& session : {one, other, client}) {
    MakeReady(session, 1, "bytes=16");
    MakeReady(session, 2, "bytes=16");
  }
  ASSERT_TRUE(Submit(one, 1, 0).ok());
  ASSERT_TRUE(Submit(one, 2, 1).ok());
  ASSERT_TRUE(Submit(other, 1, 0).ok());
  EXPECT_EQ(one.sink->count(), 0U);

  ASSERT_TRUE(Submit(other, 2, 1).ok());

  ASSERT_EQ(other.sink->count(), 1U);
  EXPECT_THAT(
      std::string(LastOf(other).message()),
      HasSubstr("user 1000 has 3 jobs in flight, its limit 'limits.user.queue' "
                "is 3; the largest holders: session 1 (pid 1 'cam') with 2, "
                "session 2 (pid 2 'cam') with 1"));
  // Another user has its own.
  for (uint32_t slot = 0; slot < 3; ++slot) {
    ASSERT_TRUE(Submit(client, 1 + slot % 2, slot).ok());
  }
  EXPECT_EQ(client.sink->count(), 0U);
}

TEST_F(QueueLimitTest, JobsThatEndMakeRoom) {
  const testing::TestSession session = Open();
  MakeReady(session, 1, "bytes=16");
  for (uint32_t slot = 0; slot < 4; ++slot) {
    ASSERT_TRUE(Submit(session, 1, slot).ok());
  }
  ASSERT_EQ(session.sink->count(), 1U);
  RunReady();
  ASSERT_TRUE(device.Release());
  RunReady();
  ASSERT_EQ(session.sink->count(), 2U);
  ASSERT_TRUE(Submit(session, 1, 3).ok());
  EXPECT_EQ(session.sink->count(), 2U);
}

TEST_F(QueueLimitTest, CancelledJobsAndThoseOfSessionsThatEndMakeRoom) {
  const testing::TestSession session = Open();
  const testing::TestSession other = Open(2);
  MakeReady(session, 1, "bytes=16");
  MakeReady(other, 1, "bytes=16");
  for (uint32_t slot = 0; slot < 3; ++slot) {
    ASSERT_TRUE(Submit(session, 1, slot).ok());
  }
  ASSERT_TRUE(session->DestroyContext(1).ok());
  for (uint32_t slot = 0; slot < 3; ++slot) {
    ASSERT_TRUE(Submit(other, 1, slot).ok());
  }
  EXPECT_EQ(other.sink->count(), 0U);
  service->CloseSession(other->id());
  MakeReady(session, 2, "bytes=16");
  for (uint32_t slot = 0; slot < 3; ++slot) {
    ASSERT_TRUE(Submit(session, 2, slot).ok());
  }
  // The three that were cancelled with their context, and no refusal.
  EXPECT_EQ(session.sink->count(), 3U);
}

TEST_F(QueueLimitTest, NewestFrameTakesThePlaceOfAnOlderOne) {
  const testing::TestSession session = Open();
  MakeReady(session, 1, "bytes=16");
  QueueRequest newest;
  newest.context = 1;
  newest.policy = QueuePolicy::kNewest;
  newest.depth = 3;
  ASSERT_TRUE(session->SetQueue(newest).ok());
  for (uint32_t slot = 0; slot < 10; ++slot) {
    ASSERT_TRUE(Submit(session, 1, slot).ok());
  }
  ASSERT_EQ(session.sink->count(), 7U);
  for (const JobCompletion& dropped : session.sink->all()) {
    EXPECT_TRUE(absl::IsAborted(dropped.status)) << dropped.status;
  }
}

TEST_F(QueueLimitTest, NewestFrameBesideOneThatRunsIsOneMore) {
  const testing::TestSession session = Open();
  for (uint32_t context = 1; context <= 3; ++context) {
    MakeReady(session, context, "bytes=16");
    QueueRequest newest;
    newest.context = context;
    newest.policy = QueuePolicy::kNewest;
    ASSERT_TRUE(session->SetQueue(newest).ok());
    ASSERT_TRUE(Submit(session, context, context).ok());
  }
  RunReady();
  ASSERT_EQ(session.sink->count(), 0U);
  // Nothing waits that it could replace.
  ASSERT_TRUE(Submit(session, 1, 4).ok());
  ASSERT_EQ(session.sink->count(), 1U);
  EXPECT_TRUE(absl::IsResourceExhausted(LastOf(session))) << LastOf(session);
}

}  // namespace
}  // namespace rknnd::core
