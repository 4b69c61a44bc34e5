// Cores that are lent: whose jobs run where meanwhile, and who is told what.
// And those who use the NPU without asking.

#include <optional>
#include <string>
#include <vector>

#include "daemon/core/testing/core_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rknnd::core {
namespace {

using ::testing::HasSubstr;
using testing::TestSession;

constexpr char kLeaseModel[] = "bytes=16 internal=4096 modelled=10";

class LeaseTest : public testing::CoreTest {
 protected:
  // The answer, once there is one.
  using Answer = std::optional<absl::Status>;
  void Lease(const TestSession& session, uint32_t cores, Answer* answer) {
    service->Lease(session->id(), cores, "llm --big",
                   [answer](absl::Status status) { *answer = status; });
    RunLoops();
  }

  TestSession client_ = Open(100);
  TestSession operator_ = Open(812);
};

TEST_F(LeaseTest, IdleCoresAreHadAtOnceAndShown) {
  Answer answer;
  Lease(operator_, 1, &answer);
  EXPECT_EQ(answer, absl::OkStatus());
  const StatusReport status = service->Status();
  EXPECT_EQ(status.cores[0].lent_to, "llm --big (pid 812)");
  EXPECT_EQ(status.cores[1].lent_to, "");
}

TEST_F(LeaseTest, BusyCoreIsWaitedFor) {
  MakeReady(client_, 1, kLeaseModel, 0, 1);
  device.HoldJobs(true);
  ASSERT_TRUE(Submit(client_, 1, 0).ok());
  RunReady();
  Answer answer;
  Lease(operator_, 1, &answer);
  EXPECT_EQ(answer, std::nullopt);
  // Nobody begins there meanwhile.
  ASSERT_TRUE(Submit(client_, 1, 1).ok());
  EXPECT_EQ(client_.sink->count(), 1U);
  ASSERT_TRUE(device.Release());
  RunLoops();
  EXPECT_EQ(answer, absl::OkStatus());
  const auto answers = client_.sink->all();
  ASSERT_EQ(answers.size(), 2U);
  EXPECT_TRUE(answers[1].status.ok()) << "the job that ran is not disturbed";
}

TEST_F(LeaseTest, JobsOfLentCoresAreAnsweredWithTheHolder) {
  MakeReady(client_, 1, kLeaseModel, 0, 1);
  MakeReady(client_, 2, kLeaseModel, 0, 3);
  Answer answer;
  Lease(operator_, 1, &answer);
  ASSERT_TRUE(Submit(client_, 1, 0).ok());
  const absl::Status refused = client_.sink->last().status;
  EXPECT_EQ(refused.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(refused.message(),
            "context 1 cannot run: core 0 is lent to 'llm --big' (pid 812) "
            "until that ends (rknnctl lease); choose other cores, or wait");
  // A gang that needs the core, too.
  ASSERT_TRUE(Submit(client_, 2, 1).ok());
  EXPECT_EQ(client_.sink->count(), 2U);
}

TEST_F(LeaseTest, QueuedJobsOfLentCoresAreAnsweredAtOnce) {
  MakeReady(client_, 1, kLeaseModel, 0, 1);
  device.HoldJobs(true);
  ASSERT_TRUE(Submit(client_, 1, 0).ok());
  RunReady();
  ASSERT_TRUE(Submit(client_, 1, 1).ok());
  ASSERT_TRUE(Submit(client_, 1, 2).ok());
  Answer answer;
  Lease(operator_, 1, &answer);
  const auto answers = client_.sink->all();
  ASSERT_EQ(answers.size(), 2U);
  for (const JobCompletion& one : answers) {
    EXPECT_THAT(std::string(one.status.message()),
                HasSubstr("lent to 'llm --big' (pid 812)"));
  }
  EXPECT_EQ(answers[0].slot, 1U);
  EXPECT_EQ(answers[1].slot, 2U);
  ASSERT_TRUE(device.Release());
}

TEST_F(LeaseTest, JobsOfAnyCoreGoToTheOthers) {
  Answer answer;
  Lease(operator_, 3, &answer);
  MakeReady(client_, 1, kLeaseModel);
  for (uint32_t slot = 0; slot < 4; ++slot) {
    ASSERT_TRUE(Submit(client_, 1, slot).ok());
    RunReady();
  }
  EXPECT_EQ(client_.sink->count(), 4U);
  for (const auto& run : device.runs()) EXPECT_EQ(run.core, 2U);
  for (const JobCompletion& one : client_.sink->all()) {
    EXPECT_TRUE(one.status.ok()) << one.status;
  }
}

TEST_F(LeaseTest, ConnectionsEndGivesTheCoresBack) {
  MakeReady(client_, 1, kLeaseModel, 0, 1);
  Answer answer;
  Lease(operator_, 1, &answer);
  service->CloseSession(operator_->id());
  EXPECT_EQ(service->Status().cores[0].lent_to, "");
  ASSERT_TRUE(Submit(client_, 1, 0).ok());
  RunReady();
  EXPECT_TRUE(client_.sink->last().status.ok());
}

TEST_F(LeaseTest, JobsThatWaitedForACoreBeginWhenItComesBack) {
  MakeReady(client_, 1, kLeaseModel);
  Answer answer;
  Lease(operator_, 6, &answer);
  device.HoldJobs(true);
  ASSERT_TRUE(Submit(client_, 1, 0).ok());
  RunReady();
  const TestSession other = Open(101);
  MakeReady(other, 1, kLeaseModel);
  ASSERT_TRUE(Submit(other, 1, 0).ok());
  RunReady();
  EXPECT_EQ(device.held(), 1U);
  const uint32_t woken = waker.count;
  service->CloseSession(operator_->id());
  EXPECT_GT(waker.count, woken);
  RunReady();
  EXPECT_EQ(device.held(), 2U);
  while (device.Release()) {
  }
}

TEST_F(LeaseTest, AllCoresMayBeLent) {
  MakeReady(client_, 1, kLeaseModel);
  Answer answer;
  Lease(operator_, 7, &answer);
  EXPECT_EQ(answer, absl::OkStatus());
  ASSERT_TRUE(Submit(client_, 1, 0).ok());
  EXPECT_THAT(std::string(client_.sink->last().status.message()),
              HasSubstr("cores 0 to 2 are lent to"));
}

TEST_F(LeaseTest, OverlapIsRefused) {
  Answer first;
  Lease(operator_, 3, &first);
  const TestSession second = Open(900);
  Answer answer;
  Lease(second, 2, &answer);
  ASSERT_TRUE(answer.has_value());
  EXPECT_THAT(std::string(answer->message()),
              HasSubstr("core 1 is lent to 'llm --big' (pid 812)"));
  Lease(second, 0x10, &answer);
  EXPECT_EQ(answer->code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(LeaseTest, HolderThatDiesWhileItWaitsLeavesNothing) {
  MakeReady(client_, 1, kLeaseModel, 0, 1);
  device.HoldJobs(true);
  ASSERT_TRUE(Submit(client_, 1, 0).ok());
  RunReady();
  Answer answer;
  Lease(operator_, 1, &answer);
  service->CloseSession(operator_->id());
  ASSERT_TRUE(device.Release());
  RunLoops();
  EXPECT_EQ(answer, std::nullopt);
  EXPECT_EQ(service->Status().cores[0].lent_to, "");
}

// Finds what it is told to.
class Finder final : public ForeignUserFinder {
 public:
  std::vector<ForeignUser> Find() override {
    ++searches;
    return users;
  }
  [[nodiscard]] bool worthwhile() const override { return npu; }

  std::vector<ForeignUser> users;
  int searches = 0;
  bool npu = true;
};

class ForeignUsersTest : public testing::CoreTest {
 protected:
  ForeignUsersTest() {
    StopService();
    options.foreign_users = &finder_;
    StartService();
  }

  Finder finder_;
};

TEST_F(ForeignUsersTest, AreLookedForByThePagerAndShown) {
  finder_.users = {{812, "rkllm-server", "/dev/dri/renderD129"}};
  int told = 0;
  service->FindForeignUsers([&] { ++told; });
  service->FindForeignUsers([&] { ++told; });
  EXPECT_EQ(finder_.searches, 0) << "not on the loop";
  RunLoops();
  EXPECT_EQ(told, 2);
  EXPECT_EQ(finder_.searches, 1);
  ASSERT_EQ(service->Status().foreign_users.size(), 1U);
  EXPECT_EQ(service->Status().foreign_users[0].comm, "rkllm-server");
}

TEST_F(ForeignUsersTest, AnswerIsGoodForSomeSeconds) {
  int told = 0;
  service->FindForeignUsers([&] { ++told; });
  RunLoops();
  clock.Advance(base::kSecond);
  service->FindForeignUsers([&] { ++told; });
  EXPECT_EQ(told, 2);
  EXPECT_EQ(finder_.searches, 1);
  clock.Advance(10 * base::kSecond);
  service->FindForeignUsers([&] { ++told; });
  RunLoops();
  EXPECT_EQ(finder_.searches, 2);
}

TEST_F(ForeignUsersTest, WithoutAnNpuNobodyIsLookedFor) {
  finder_.npu = false;
  int told = 0;
  service->FindForeignUsers([&] { ++told; });
  EXPECT_EQ(told, 1);
  EXPECT_EQ(finder_.searches, 0);
}

TEST_F(LeaseTest, LentCoresAreNotPlannedWith) {
  MakeReady(client_, 1, kLeaseModel, 0, 1);
  AdmissionRequest request;
  request.context = 1;
  request.rate_mhz = 1000;
  ASSERT_TRUE(client_->Admit(request)->fits);
  Answer answer;
  Lease(operator_, 1, &answer);
  const auto planned = client_->Admit(request);
  EXPECT_FALSE(planned->fits);
  EXPECT_THAT(planned->reason, HasSubstr("core 0 is lent to 'llm --big'"));
}

}  // namespace
}  // namespace rknnd::core
