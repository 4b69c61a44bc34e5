// Tests of what users, groups and allocations may have, and of changing it
// while sessions are there.

#include "daemon/core/accounts/tenant.h"

#include <string>
#include <utility>

#include "daemon/core/testing/core_fixture.h"
#include "daemon/core/testing/words.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rknnd::core {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using testing::TestSession;

// ---- whose limits -----------------------------------------------------------

TEST(TenantTest, UsersOwnLimitsComeBeforeItsGroups) {
  LiveOptions options;
  options.user_limits.memory = 1;
  options.users[7].memory = 2;
  options.groups[5].memory = 3;
  EXPECT_EQ(ResolveLimits(options, Peer(7, {5})).limits.memory, 2U);
  EXPECT_EQ(ResolveLimits(options, Peer(7, {5})).table, "limits.users");
  EXPECT_EQ(ResolveLimits(options, Peer(8, {5})).limits.memory, 3U);
  EXPECT_EQ(ResolveLimits(options, Peer(8, {5})).table, "limits.groups");
  EXPECT_EQ(ResolveLimits(options, Peer(8, {6})).limits.memory, 1U);
  EXPECT_EQ(ResolveLimits(options, Peer(8, {6})).table, "limits.user");
}

TEST(TenantTest, LargestOfTheGroupsCountsOfEachLimit) {
  LiveOptions options;
  options.groups[5] = {10, 1, 7, 0, 4};
  options.groups[6] = {20, 0, 3, 9, 2};
  EXPECT_EQ(ResolveLimits(options, Peer(8, {5, 6, 1})).limits,
            (UserLimits{20, 0, 7, 0, 4}));
}

TEST(TenantTest, AllocationComesBeforeAll) {
  LiveOptions options;
  options.users[7].memory = 2;
  SessionPeer peer = Peer(7);
  auto allocation = std::make_shared<Allocation>();
  allocation->name = "pod";
  allocation->limits.memory = 9;
  peer.allocation = std::move(allocation);
  EXPECT_EQ(ResolveLimits(options, peer).limits.memory, 9U);
}

// ---- in a service -----------------------------------------------------------

class TenantLimitTest : public testing::CoreTest {
 protected:
  void Restart() {
    StopService();
    StartService();
  }
  TestSession OpenAs(SessionPeer peer) {
    TestSession session;
    session.sink = std::make_shared<testing::RecordingSink>();
    session.log = std::make_shared<testing::RecordingLog>();
    auto opened =
        service->OpenSession(std::move(peer), session.sink, session.log);
    EXPECT_TRUE(opened.ok()) << opened.status();
    if (opened.ok()) session.session = *std::move(opened);
    return session;
  }
  absl::Status TryOpen(SessionPeer peer) {
    return service
        ->OpenSession(std::move(peer),
                      std::make_shared<testing::RecordingSink>(),
                      std::make_shared<testing::RecordingLog>())
        .status();
  }
  static std::string Words(const absl::Status& status) {
    return std::string(status.message());
  }
};

TEST_F(TenantLimitTest, SessionsOfAUserAreLimited) {
  options.user_limits.sessions = 2;
  Restart();
  const TestSession one = OpenAs(Peer(1000));
  const TestSession other = OpenAs(Peer(1000));
  const absl::Status refused = TryOpen(Peer(1000));
  EXPECT_TRUE(absl::IsResourceExhausted(refused));
  EXPECT_THAT(Words(refused),
              HasSubstr("user 1000 holds 2 sessions, its limit "
                        "'limits.user.sessions' is 2; the largest holders: "
                        "session 1 (pid 10 'cam') with 1, session 2"));
  EXPECT_TRUE(TryOpen(Peer(1001)).ok());
  service->CloseSession(one->id());
  EXPECT_TRUE(TryOpen(Peer(1000)).ok());
}

TEST_F(TenantLimitTest, OperatorsMayAlwaysLook) {
  options.user_limits.sessions = 1;
  Restart();
  SessionPeer admin = Peer(0);
  admin.admin = true;
  const TestSession first = OpenAs(admin);
  const TestSession second = OpenAs(admin);
  // Nor do they take a program's place.
  EXPECT_TRUE(TryOpen(Peer(0)).ok());
}

TEST_F(TenantLimitTest, FullHouseSaysWhoHasIt) {
  options.sessions = 3;
  Restart();
  const TestSession one = OpenAs(Peer(1000));
  const TestSession two = OpenAs(Peer(1000));
  const TestSession three = OpenAs(Peer(1001));
  EXPECT_THAT(Words(TryOpen(Peer(1002))),
              HasSubstr("limit 'sessions' is 3, all in use; the largest "
                        "holders: user 1000 with 2, user 1001 with 1"));
}

TEST_F(TenantLimitTest, OperatorsFindRoomInAFullHouse) {
  options.sessions = 1;
  Restart();
  const TestSession one = OpenAs(Peer(1000));
  SessionPeer admin = Peer(0);
  admin.admin = true;
  EXPECT_TRUE(TryOpen(admin).ok());
  admin.address = "192.0.2.7:40112";
  EXPECT_FALSE(TryOpen(admin).ok());
}

TEST_F(TenantLimitTest, LimitOfAGroupIsNamedAsSuch) {
  options.user_limits.memory = kPage;
  options.groups[44].memory = 2 * kPage;
  Restart();
  const TestSession session = OpenAs(Peer(1000, {44}));
  ASSERT_TRUE(AllocateNow(session, 1, 2 * kPage, 0).ok());
  EXPECT_THAT(Words(AllocateNow(session, 2, 1, 0).status()),
              HasSubstr("'limits.groups.memory' of 8192 bytes"));
}

TEST_F(TenantLimitTest, ProcessesOfOneUserShareTheLargestOfTheirGroups) {
  options.user_limits.buffers = 1;
  options.groups[44].buffers = 3;
  Restart();
  const TestSession outside = OpenAs(Peer(1000));
  const TestSession inside = OpenAs(Peer(1000, {44}));
  for (uint32_t buffer = 1; buffer <= 3; ++buffer) {
    EXPECT_TRUE(AllocateNow(outside, buffer, 1, 0).ok());
  }
  EXPECT_FALSE(AllocateNow(inside, 1, 1, 0).ok());
}

TEST_F(TenantLimitTest,
       SessionsOfAnAllocationCountTogetherAndNotForTheirUsers) {
  options.user_limits.contexts = 1;
  Restart();
  auto allocation = std::make_shared<Allocation>();
  allocation->name = "pod-7";
  allocation->limits.contexts = 2;
  allocation->share.weight = 300;
  SessionPeer peer = Peer(1000);
  peer.allocation = allocation;
  SessionPeer other_user = Peer(2000);
  other_user.pid = 11;
  other_user.allocation = allocation;
  const TestSession one = OpenAs(peer);
  const TestSession two = OpenAs(other_user);
  const TestSession outside = OpenAs(Peer(1000));
  ASSERT_EQ(Upload(one, "bytes=16"), absl::OkStatus());
  EXPECT_EQ(Create(one, 1, "bytes=16"), absl::OkStatus());
  EXPECT_EQ(Create(two, 1, "bytes=16"), absl::OkStatus());
  const auto refused = Create(two, 2, "bytes=16");
  ASSERT_TRUE(refused.has_value());
  EXPECT_THAT(Words(*refused),
              HasSubstr("allocation 'pod-7' holds 2 contexts, its limit "
                        "'allocation.contexts' is 2"));
  EXPECT_EQ(Create(outside, 1, "bytes=16"), absl::OkStatus());
  EXPECT_EQ(service->Sessions()[0].share.weight, 300U);
  EXPECT_EQ(service->Sessions()[2].share.weight, 100U);
}

// ---- cores ------------------------------------------------------------------

class CoreLimitTest : public TenantLimitTest {
 protected:
  CoreLimitTest() {
    options.scheduling.users[1000].cores = 0b110;
    Restart();
  }
  uint32_t MaskOf(size_t context) {
    return service->Contexts()[context].core_mask;
  }
};

TEST_F(CoreLimitTest, ContextsGetTheAllowedCoresInTurn) {
  const TestSession session = OpenAs(Peer(1000));
  for (uint32_t context = 1; context <= 3; ++context) {
    MakeReady(session, context, "bytes=16");
  }
  EXPECT_EQ(MaskOf(0), 2U);
  EXPECT_EQ(MaskOf(1), 4U);
  EXPECT_EQ(MaskOf(2), 2U);
  const TestSession free = OpenAs(Peer(1001));
  MakeReady(free, 1, "bytes=16");
  EXPECT_EQ(MaskOf(3), 0U);
}

TEST_F(CoreLimitTest, MaskOfAnotherCoreIsRefused) {
  const TestSession session = OpenAs(Peer(1000));
  MakeReady(session, 1, "bytes=16", 0, /*core_mask=*/4);
  for (const uint32_t mask : {1U, 3U, 7U, 0xffffU}) {
    const auto refused = Create(session, 2, "bytes=16", 0, mask);
    ASSERT_TRUE(refused.has_value());
    EXPECT_TRUE(absl::IsPermissionDenied(*refused)) << *refused;
    EXPECT_THAT(Words(*refused), HasSubstr("user 1000 may have cores 1 and 2"));
    EXPECT_TRUE(absl::IsPermissionDenied(SetCoreMaskNow(session, 1, mask)));
  }
  EXPECT_EQ(MaskOf(0), 4U);
  EXPECT_TRUE(SetCoreMaskNow(session, 1, 2).ok());
  EXPECT_EQ(MaskOf(0), 2U);
  // What is no mask is that, whoever may have which.
  EXPECT_TRUE(absl::IsInvalidArgument(SetCoreMaskNow(session, 1, 12)));
}

TEST_F(CoreLimitTest, CoresThatNoDeviceHasAreAnErrorAtTheStart) {
  StopService();
  options.scheduling.groups[5].cores = 0b1000;
  EXPECT_THAT(Words(Service::Create(options).status()),
              HasSubstr("limits.groups, group 5: 'cores' names none of those "
                        "that this device has, which are 0 to 2"));
  options.scheduling.groups.clear();
  StartService();
}

// ---- while sessions are there -----------------------------------------------

class ReconfigureTest : public TenantLimitTest {
 protected:
  void Take() {
    const absl::Status taken = service->Reconfigure(options);
    ASSERT_TRUE(taken.ok()) << taken;
    RunLoops();
  }
};

TEST_F(ReconfigureTest, LoweredLimitOfAUserTakesNothingAndGivesNoMore) {
  const TestSession session = Open();
  ASSERT_TRUE(AllocateNow(session, 1, 4 * kPage, 0).ok());
  options.user_limits.memory = 2 * kPage;
  options.user_limits.buffers = 3;
  Take();
  EXPECT_EQ(memory().io, 4 * kPage);
  EXPECT_THAT(Words(AllocateNow(session, 2, kPage, 0).status()),
              HasSubstr("holds 16384 bytes; 4096 more for session 1 (pid 100 "
                        "'cam') exceed its limit 'limits.user.memory' of 8192 "
                        "bytes, of which 0 are free"));
  ASSERT_TRUE(session->ReleaseBuffer(1).ok());
  RunLoops();
  EXPECT_TRUE(AllocateNow(session, 2, 2 * kPage, 0).ok());
  EXPECT_FALSE(AllocateNow(session, 3, 1, 0).ok());
}

TEST_F(ReconfigureTest, RaisedLimitCountsAtOnce) {
  options.user_limits.memory = kPage;
  options.user_limits.contexts = 1;
  Restart();
  const TestSession session = Open();
  ASSERT_EQ(Upload(session, "bytes=16"), absl::OkStatus());
  ASSERT_TRUE(AllocateNow(session, 1, kPage, 0).ok());
  ASSERT_FALSE(AllocateNow(session, 2, kPage, 0).ok());
  ASSERT_EQ(Create(session, 1, "bytes=16"), absl::OkStatus());
  ASSERT_FALSE(Create(session, 2, "bytes=16")->ok());
  options.user_limits = {};
  options.user_limits.memory = 4 * kPage;
  options.user_limits.contexts = 2;
  Take();
  EXPECT_TRUE(AllocateNow(session, 2, kPage, 0).ok());
  EXPECT_EQ(Create(session, 2, "bytes=16"), absl::OkStatus());
}

TEST_F(ReconfigureTest, LimitsOfSessionsAndOfAllChange) {
  const TestSession session = Open();
  ASSERT_TRUE(AllocateNow(session, 1, 2 * kPage, 0).ok());
  options.limits.memory = 2 * kPage;
  Take();
  EXPECT_THAT(Words(AllocateNow(session, 2, 1, 0).status()),
              HasSubstr("its limit 'memory' of 8192"));
  options.limits.memory = 1 << 20;
  options.limits.buffers = 1;
  Take();
  EXPECT_THAT(Words(AllocateNow(session, 2, 1, 0).status()),
              HasSubstr("its limit 'buffers' is 1"));
  options.limits.buffers = 100;
  options.limits.buffer_bytes = kPage;
  Take();
  EXPECT_THAT(Words(AllocateNow(session, 2, 2 * kPage, 0).status()),
              HasSubstr("the limit 'buffer_bytes' is 4096"));
  options.limits.buffer_bytes = 1 << 20;
  options.address_space = 3 * kPage;
  Take();
  EXPECT_TRUE(AllocateNow(session, 2, kPage, 0).ok());
  EXPECT_THAT(Words(AllocateNow(session, 3, kPage, 0).status()),
              HasSubstr("the limit 'address_space' of 12288"));
  EXPECT_EQ(service->Memory().budget, 3 * kPage);
  options.sessions = 1;
  Take();
  EXPECT_THAT(Words(TryOpen(Peer(1))), HasSubstr("limit 'sessions' is 1"));
  EXPECT_EQ(service->limits().buffers, 100U);
}

TEST_F(ReconfigureTest, QueuesKeepTheirLengthUntilARestart) {
  const uint32_t before = service->limits().jobs_per_context;
  options.limits.jobs_per_context = before + 1;
  Take();
  EXPECT_EQ(service->limits().jobs_per_context, before);
}

TEST_F(ReconfigureTest, QueueLimitOfAUserChanges) {
  device.HoldJobs(true);
  const TestSession session = Open();
  MakeReady(session, 1, "bytes=16");
  for (uint32_t slot = 0; slot < 3; ++slot) {
    ASSERT_TRUE(Submit(session, 1, slot).ok());
  }
  options.users[1000].queue = 3;
  Take();
  ASSERT_TRUE(Submit(session, 1, 3).ok());
  ASSERT_EQ(session.sink->count(), 1U);
  EXPECT_THAT(Words(session.sink->last().status),
              HasSubstr("'limits.users.queue' is 3"));
  options.users.clear();
  Take();
  ASSERT_TRUE(Submit(session, 1, 3).ok());
  EXPECT_EQ(session.sink->count(), 1U);
  device.HoldJobs(false);
}

TEST_F(ReconfigureTest, SharesChangeForContextsThatAreMade) {
  const TestSession session = Open();
  MakeReady(session, 1, "bytes=16", /*flags=*/0);
  options.scheduling.users[1000] = {Priority::kHigh, 400, 0b1};
  Take();
  EXPECT_EQ(service->Sessions()[0].share.weight, 400U);
  MakeReady(session, 2, "bytes=16", /*flags=*/0);
  EXPECT_EQ(service->Contexts()[0].priority, Priority::kMedium);
  EXPECT_EQ(service->Contexts()[0].core_mask, 0U);
  EXPECT_EQ(service->Contexts()[1].priority, Priority::kHigh);
  EXPECT_EQ(service->Contexts()[1].core_mask, 1U);
}

// A share of twice the weight has twice the time, from the reload on.
TEST_F(ReconfigureTest, WeightCountsForJobsOfContextsThatWereThere) {
  const TestSession heavy = Open(1, 1000);
  const TestSession light = Open(2, 2000);
  for (const auto& session : {heavy, light}) {
    MakeReady(session, 1, "bytes=16", 1, /*core_mask=*/1);
  }
  options.scheduling.users[1000].weight = 300;
  Take();
  device.set_run_time(base::kMillisecond);
  device.HoldJobs(true);
  for (uint32_t slot = 0; slot < 16; ++slot) {
    ASSERT_TRUE(Submit(heavy, 1, slot).ok());
    ASSERT_TRUE(Submit(light, 1, slot).ok());
  }
  RunReady();
  for (int i = 0; i < 16; ++i) {
    clock.Advance(base::kMillisecond);
    ASSERT_TRUE(device.Release());
    RunReady();
  }
  // 12 to 4, but for the first turns.
  EXPECT_GE(heavy.sink->count(), 11U);
  EXPECT_LE(heavy.sink->count(), 13U);
  device.HoldJobs(false);
}

TEST_F(ReconfigureTest, ErrorChangesNothing) {
  const TestSession session = Open();
  LiveOptions wrong = options;
  wrong.scheduling.share.cores = 0b1000;
  wrong.user_limits.memory = kPage;
  wrong.limits.buffers = 1;
  EXPECT_TRUE(absl::IsInvalidArgument(service->Reconfigure(wrong)));
  EXPECT_TRUE(AllocateNow(session, 1, 2 * kPage, 0).ok());
  EXPECT_TRUE(AllocateNow(session, 2, 2 * kPage, 0).ok());
}

TEST_F(ReconfigureTest, GraceIsThatOfModelsThatAreLetGoFromThenOn) {
  const TestSession session = Open();
  options.model_grace = base::kSecond;
  Take();
  Upload(session, "weight=10");
  ASSERT_EQ(Create(session, 1, "weight=10"), absl::OkStatus());
  ASSERT_TRUE(session->DestroyContext(1).ok());
  EXPECT_EQ(service->Status().models, 1U);
  PassTime(2 * base::kSecond);
  EXPECT_EQ(service->Status().models, 0U);
}

}  // namespace
}  // namespace rknnd::core
