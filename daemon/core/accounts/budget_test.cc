// Tests of the limits on memory: what the NPU maps, and what a user may hold
// over all sessions.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "daemon/core/testing/core_fixture.h"
#include "daemon/core/testing/words.h"
#include "gtest/gtest.h"

namespace rknnd::core {
namespace {

using testing::TestSession;

constexpr uint64_t kBudget = 100'000;

class BudgetTest : public testing::CoreTest {
 protected:
  BudgetTest() {
    options.address_space = kBudget;
    StartService();
  }
  static bool Says(const absl::Status& status, const std::string& words) {
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
    EXPECT_NE(status.message().find(words), std::string::npos) << status;
    return status.message().find(words) != std::string::npos;
  }
  std::vector<std::string> ModelWeights() {
    std::vector<std::string> weights;
    for (const ModelReport& model : service->Models()) {
      weights.push_back(std::to_string(model.weight));
    }
    std::sort(weights.begin(), weights.end());
    return weights;
  }
};

TEST_F(BudgetTest, RefusalNamesLimitRequestRestAndTheLargestHolders) {
  const TestSession small = Open(1);
  const TestSession large = Open(2);
  Upload(small, "weight=30000 internal=4096");
  ASSERT_EQ(Create(small, 1, "weight=30000 internal=4096", 0, 1),
            absl::OkStatus());
  ASSERT_TRUE(AllocateNow(small, 1, kPage / 2, 0).ok());
  ASSERT_TRUE(AllocateNow(large, 1, 12 * kPage, 0).ok());

  const absl::Status refused = AllocateNow(large, 2, 4 * kPage, 0).status();

  Says(refused, "limit 'address_space' of 100000 bytes");
  Says(refused, "holds 87344 bytes; 16384 more for session 2");
  Says(refused, "of which 12656 are free");
}

TEST_F(BudgetTest, HoldersAreNamedByTheirSize) {
  const TestSession session = Open(7);
  Upload(session, "weight=30000 internal=4096");
  ASSERT_EQ(Create(session, 1, "weight=30000 internal=4096", 0, 1),
            absl::OkStatus());
  ASSERT_TRUE(AllocateNow(session, 1, 12 * kPage, 0).ok());

  const absl::Status refused = AllocateNow(session, 2, 10 * kPage, 0).status();

  Says(refused,
       "the largest holders: session 1 (pid 7 'cam') with 49152, model "
       "'m.onnx' with 30000, internal memory with 4096");
}

TEST_F(BudgetTest, RequestThatIsRefusedAnywayDropsNoModel) {
  const TestSession session = Open();
  Upload(session, "weight=30000 internal=0");
  ASSERT_EQ(Create(session, 1, "weight=30000 internal=0"), absl::OkStatus());
  ASSERT_TRUE(session->DestroyContext(1).ok());
  ASSERT_TRUE(AllocateNow(session, 1, 10 * kPage, 0).ok());

  Says(AllocateNow(session, 2, 15 * kPage, 0).status(), "'address_space'");
  EXPECT_EQ(ModelWeights(), std::vector<std::string>({"30000"}));

  // Without the model there is room for this one.
  EXPECT_TRUE(AllocateNow(session, 2, 14 * kPage, 0).ok());
  EXPECT_TRUE(ModelWeights().empty());
}

TEST_F(BudgetTest, LargeWeightsAreFreedByThePagerOrByWhoNeedsTheRoom) {
  constexpr char kLarge[] = "weight=4194304 internal=4096";
  options.address_space = 5'000'000;
  StartService();
  const TestSession session = Open();
  const auto leave = [&] {
    Upload(session, kLarge);
    ASSERT_EQ(Create(session, 1, kLarge), absl::OkStatus());
    ASSERT_TRUE(session->DestroyContext(1).ok());
    clock.Advance(options.model_grace);
    timers.RunDue();
    ASSERT_TRUE(service->Models().empty());
    // Not by the loop, where others wait.
    EXPECT_EQ(device.models(), 1U);
    EXPECT_EQ(memory().weight, 4194304U);
  };

  leave();
  ASSERT_TRUE(pager.RunOne());
  EXPECT_EQ(device.models(), 0U);
  EXPECT_EQ(memory().weight, 0U);

  leave();
  EXPECT_TRUE(AllocateNow(session, 1, 1'000'000, 0).ok());
  EXPECT_EQ(device.models(), 0U);
  EXPECT_EQ(memory().weight, 0U);
  RunLoops();
}

TEST_F(BudgetTest, ModelThatWouldNotFitIsRefusedAndLeavesNothing) {
  const TestSession session = Open();
  const auto answer = Upload(session, "weight=100001");
  ASSERT_TRUE(answer.has_value());
  Says(*answer, "'address_space' of 100000");
  EXPECT_EQ(memory().total(), 0U);
  EXPECT_EQ(device.models(), 0U);
  EXPECT_EQ(Upload(session, "weight=100000"), absl::OkStatus());
}

TEST_F(BudgetTest, InternalMemoryThatWouldNotFitRefusesTheContext) {
  const TestSession session = Open();
  Upload(session, "internal=40960");
  const auto created = Create(session, 1, "internal=40960");
  ASSERT_TRUE(created.has_value());
  Says(*created, "internal memory of 40960 bytes");
  EXPECT_EQ(Create(session, 1, "internal=40960", 0, 1), absl::OkStatus());
}

TEST_F(BudgetTest, ArenaThatIsBeingMadeIsCountedOnce) {
  // So large that they are made on the pager; all cores', and no page more.
  constexpr uint64_t kArena = uint64_t{2} << 20;
  const std::string model = "weight=4096 internal=" + std::to_string(kArena);
  options.address_space = 3 * kArena + 4096;
  StartService();
  const TestSession session = Open();
  Upload(session, model);
  std::vector<absl::Status> answers;
  StartCreate(session, 1, model, &answers);
  EXPECT_EQ(memory().internal, kArena);

  // The first core's arena is charged and not there yet.
  StartCreate(session, 2, model, &answers);
  RunLoops();

  EXPECT_EQ(answers,
            std::vector<absl::Status>({absl::OkStatus(), absl::OkStatus()}));
  EXPECT_EQ(memory().internal, 3 * kArena);
}

TEST_F(BudgetTest, ArenaThatIsBeingMadeIsCounted) {
  constexpr uint64_t kArena = uint64_t{2} << 20;
  const std::string model = "weight=4096 internal=" + std::to_string(kArena);
  options.address_space = 3 * kArena;
  StartService();
  const TestSession session = Open();
  Upload(session, model);
  std::vector<absl::Status> answers;
  // On one core there is room for it, on all of them there is not.
  session->CreateContext(
      {.number = 1, .model = Id(model), .core_mask = 1},
      [&](const auto& info) { answers.push_back(info.status()); });
  StartCreate(session, 2, model, &answers);
  RunLoops();

  ASSERT_EQ(answers.size(), 2U);
  Says(answers[0], "internal memory of 2097152 bytes");
  EXPECT_TRUE(answers[1].ok()) << answers[1];
}

TEST_F(BudgetTest, ModelsInGraceGiveWayOldestFirst) {
  const TestSession session = Open();
  uint32_t number = 0;
  for (const char* model :
       {"weight=30001 internal=0", "weight=30002 internal=0",
        "weight=30003 internal=0"}) {
    Upload(session, model);
    ASSERT_EQ(Create(session, ++number, model), absl::OkStatus());
  }
  ASSERT_TRUE(session->DestroyContext(2).ok());
  ASSERT_TRUE(session->DestroyContext(1).ok());

  EXPECT_EQ(Upload(session, "weight=20000 internal=0"), absl::OkStatus());
  EXPECT_EQ(ModelWeights(),
            std::vector<std::string>({"20000", "30001", "30003"}));

  EXPECT_TRUE(AllocateNow(session, 1, 10 * kPage, 0).ok());
  EXPECT_EQ(ModelWeights(), std::vector<std::string>({"20000", "30003"}));
}

TEST_F(BudgetTest, ModelsThatAreUsedDoNotGiveWay) {
  const TestSession session = Open();
  Upload(session, "weight=60000");
  ASSERT_EQ(Create(session, 1, "weight=60000"), absl::OkStatus());
  const auto refused = Upload(session, "weight=50000");
  ASSERT_TRUE(refused.has_value());
  Says(*refused, "model 'm.onnx' with 60000");
}

TEST_F(BudgetTest, ModelThatHasJustComeDoesNotGiveWay) {
  const TestSession session = Open();
  ASSERT_EQ(Upload(session, "weight=60000"), absl::OkStatus());
  const auto refused = Upload(session, "weight=50000");
  ASSERT_TRUE(refused.has_value());
  EXPECT_FALSE(refused->ok());
  EXPECT_EQ(Create(session, 1, "weight=60000"), absl::OkStatus());
}

TEST_F(BudgetTest, ConfigurationCannotGoBeyondTheDevice) {
  options.address_space = UINT64_MAX;
  StartService();
  EXPECT_EQ(service->Memory().budget, device.info().address_space);
}

TEST_F(BudgetTest, ReportSaysWhatIsTaken) {
  const TestSession session = Open();
  Upload(session, "weight=30000");
  Create(session, 1, "weight=30000");
  ASSERT_TRUE(AllocateNow(session, 1, kPage, 0).ok());
  const MemoryReport report = service->Memory();
  EXPECT_EQ(report.budget, kBudget);
  EXPECT_EQ(report.budget_used, report.kinds.total() - report.kinds.other);
  EXPECT_GE(report.budget_used, 30000 + kPage);
}

// ---- users ------------------------------------------------------------------

class UserLimitTest : public BudgetTest {
 protected:
  UserLimitTest() {
    options.address_space = 0;
    options.user_limits = {.memory = 10 * kPage, .contexts = 3, .buffers = 4};
    options.users[0] = {};
    StartService();
  }
};

TEST_F(UserLimitTest, MemoryIsThatOfAllSessionsOfTheUser) {
  const TestSession first = Open(1);
  const TestSession second = Open(2);
  ASSERT_TRUE(AllocateNow(first, 1, 4 * kPage, 0).ok());
  ASSERT_TRUE(AllocateNow(second, 1, 5 * kPage, 0).ok());

  const absl::Status refused = AllocateNow(first, 2, 2 * kPage, 0).status();

  Says(refused,
       "user 1000 holds 36864 bytes; 8192 more for session 1 (pid 1 'cam') "
       "exceed its limit 'limits.user.memory' of 40960 bytes, of which 4096 "
       "are free; the largest holders: session 2 (pid 2 'cam') with 20480, "
       "session 1 (pid 1 'cam') with 16384");
  EXPECT_TRUE(AllocateNow(first, 2, kPage, 0).ok());
}

TEST_F(UserLimitTest, MemoryOfASessionThatEndedIsFreeAgain) {
  const TestSession first = Open(1);
  const TestSession second = Open(2);
  ASSERT_TRUE(AllocateNow(first, 1, 9 * kPage, 0).ok());
  service->CloseSession(first->id());
  EXPECT_TRUE(AllocateNow(second, 1, 9 * kPage, 0).ok());
}

TEST_F(UserLimitTest, OtherUsersHaveTheirOwn) {
  const TestSession first = Open(1, 1000);
  const TestSession second = Open(2, 1001);
  ASSERT_TRUE(AllocateNow(first, 1, 10 * kPage, 0).ok());
  EXPECT_TRUE(AllocateNow(second, 1, 10 * kPage, 0).ok());
}

TEST_F(UserLimitTest, UserOfItsOwnLimitsHasThose) {
  const TestSession session = Open(1, 0);
  EXPECT_TRUE(AllocateNow(session, 1, 100 * kPage, 0).ok());
}

TEST_F(UserLimitTest, ContextsAreThoseOfAllSessionsOfTheUser) {
  const TestSession first = Open(1);
  const TestSession second = Open(2);
  Upload(first, "weight=10");
  ASSERT_EQ(Create(first, 1, "weight=10"), absl::OkStatus());
  ASSERT_EQ(Create(second, 1, "weight=10"), absl::OkStatus());
  ASSERT_EQ(Create(second, 2, "weight=10"), absl::OkStatus());

  const auto refused = Create(first, 2, "weight=10");

  ASSERT_TRUE(refused.has_value());
  Says(*refused,
       "user 1000 holds 3 contexts, its limit 'limits.user.contexts' is 3; the "
       "largest holders: session 2 (pid 2 'cam') with 2, session 1 (pid 1 "
       "'cam') with 1");
  ASSERT_TRUE(second->DestroyContext(2).ok());
  EXPECT_EQ(Create(first, 2, "weight=10"), absl::OkStatus());
}

TEST_F(UserLimitTest, BuffersAreThoseOfAllSessionsOfTheUser) {
  const TestSession first = Open(1);
  const TestSession second = Open(2);
  for (uint32_t i = 1; i <= 2; ++i) {
    ASSERT_TRUE(AllocateNow(first, i, 1, 0).ok());
    ASSERT_TRUE(AllocateNow(second, i, 1, 0).ok());
  }
  Says(AllocateNow(first, 3, 1, 0).status(),
       "user 1000 holds 4 buffers, its limit 'limits.user.buffers' is 4");
  EXPECT_TRUE(AllocateNow(Open(3, 1001), 1, 1, 0).ok());
}

TEST_F(UserLimitTest, ReportListsUsersWithTheirLimits) {
  const TestSession first = Open(1, 1000);
  const TestSession second = Open(2, 1000);
  const TestSession root = Open(3, 0);
  ASSERT_TRUE(AllocateNow(first, 1, kPage, 0).ok());
  ASSERT_TRUE(AllocateNow(second, 1, kPage, 0).ok());

  const std::vector<UserReport> users = service->Memory().users;

  ASSERT_EQ(users.size(), 2U);
  EXPECT_EQ(users[0].uid, 0U);
  EXPECT_EQ(users[0].memory_limit, 0U);
  EXPECT_EQ(users[1].uid, 1000U);
  EXPECT_EQ(users[1].sessions, 2U);
  EXPECT_EQ(users[1].buffers, 2U);
  EXPECT_EQ(users[1].memory, 2 * kPage);
  EXPECT_EQ(users[1].memory_limit, 10 * kPage);
}

}  // namespace
}  // namespace rknnd::core
