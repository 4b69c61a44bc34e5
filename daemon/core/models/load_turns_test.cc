// Whose model is loaded next, with a loader in the test's hand: a crowd of one
// user's loads costs everybody else one of them.

#include "daemon/core/models/load_turns.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/core/testing/core_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rknnd::core {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::TestSession;

class LoadTurnsTest : public ::testing::Test {
 protected:
  // Takes so long, and is expected to.
  std::shared_ptr<LoadTurns::Work> Add(const LoadPayer& payer,
                                       const std::string& name,
                                       base::Nanoseconds time) {
    return turns_->Add(
        payer, time,
        [this, name, time] {
          clock_.Advance(time);
          loaded_.push_back(name);
        },
        [this, name](LoadTurns::End end) {
          (end == LoadTurns::End::kRan ? told_ : unwanted_).push_back(name);
        });
  }
  void Add(const std::string& user, const std::string& name,
           base::Nanoseconds time = base::kSecond) {
    Add(LoadPayer{user}, name, time);
  }
  // The loader ends what it has; the loop hears of it.
  bool LoadOne() {
    if (!loader_.RunOne()) return false;
    while (loop_.RunOne()) {
    }
    return true;
  }
  void LoadAll() {
    while (LoadOne()) {
    }
  }

  base::FakeClock clock_;
  testing::ManualExecutor loop_, loader_;
  std::vector<std::string> loaded_, told_, unwanted_;
  std::shared_ptr<LoadTurns> turns_ =
      LoadTurns::Create(&loop_, &loader_, &clock_);
};

TEST_F(LoadTurnsTest, OneUsersLoadsComeInTheirOrder) {
  Add("a", "1");
  Add("a", "2");
  Add("a", "3");
  EXPECT_EQ(turns_->waiting(), 2U);
  LoadAll();
  EXPECT_THAT(loaded_, ElementsAre("1", "2", "3"));
  EXPECT_EQ(told_, loaded_);
}

TEST_F(LoadTurnsTest, NeighbourIsNextWhateverACrowdHasQueued) {
  for (int i = 0; i < 100; ++i) Add("crowd", "crowd", 10 * base::kSecond);
  LoadOne();
  // One of the crowd's is on its way.
  Add("neighbour", "mine");
  Add("neighbour", "mine too");
  LoadOne();
  LoadOne();
  LoadOne();
  EXPECT_THAT(loaded_, ElementsAre("crowd", "crowd", "mine", "mine too"));
}

TEST_F(LoadTurnsTest, TimeIsSharedByWeight) {
  const LoadPayer heavy{"heavy", 200};
  for (int i = 0; i < 60; ++i) {
    Add(heavy, "heavy", base::kSecond);
    Add("light", "light");
  }
  for (int i = 0; i < 60; ++i) LoadOne();
  EXPECT_NEAR(
      static_cast<double>(std::count(loaded_.begin(), loaded_.end(), "heavy")),
      40, 1);
}

TEST_F(LoadTurnsTest, WhatALoadTookCountsNotWhatItWasExpectedTo) {
  // "Small" models that take ten seconds each.
  for (int i = 0; i < 10; ++i) {
    turns_->Add(
        LoadPayer{"liar"}, 1,
        [this] {
          clock_.Advance(10 * base::kSecond);
          loaded_.emplace_back("liar");
        },
        [](LoadTurns::End) {});
    Add("honest", "honest");
  }
  for (int i = 0; i < 11; ++i) LoadOne();
  EXPECT_EQ(std::count(loaded_.begin(), loaded_.end(), "honest"), 10);
}

TEST_F(LoadTurnsTest, CheapLoadGoesFirstAmongEquals) {
  Add("first", "on its way");
  Add("large", "large", 40 * base::kSecond);
  Add("small", "small", base::kMillisecond);
  LoadAll();
  EXPECT_THAT(loaded_, ElementsAre("on its way", "small", "large"));
}

TEST_F(LoadTurnsTest, LargeLoadIsNotPassedOverForEver) {
  Add("first", "on its way");
  Add("large", "large", 10 * base::kSecond);
  for (int i = 0; i < 100; ++i) Add("small", "small");
  for (int i = 0; i < 20; ++i) LoadOne();
  EXPECT_EQ(std::count(loaded_.begin(), loaded_.end(), "large"), 1);
}

TEST_F(LoadTurnsTest, NobodySavesTimeUp) {
  Add("late", "late");
  LoadAll();
  for (int i = 0; i < 100; ++i) Add("busy", "busy");
  for (int i = 0; i < 50; ++i) LoadOne();
  for (int i = 0; i < 10; ++i) Add("late", "late");
  loaded_.clear();
  for (int i = 0; i < 10; ++i) LoadOne();
  EXPECT_NEAR(
      static_cast<double>(std::count(loaded_.begin(), loaded_.end(), "late")),
      5, 1);
}

TEST_F(LoadTurnsTest, LoadThatTwoWaitForHasTheEarlierTurn) {
  Add("crowd", "on its way");
  for (int i = 0; i < 10; ++i) Add("crowd", "crowd");
  const auto popular = Add(LoadPayer{"crowd"}, "popular", base::kSecond);
  LoadOne();
  turns_->Join(popular, LoadPayer{"neighbour"});
  LoadOne();
  LoadOne();
  EXPECT_THAT(loaded_, ElementsAre("on its way", "crowd", "popular"));
  LoadAll();
  EXPECT_EQ(std::count(loaded_.begin(), loaded_.end(), "popular"), 1);
  EXPECT_EQ(told_.size(), 12U);
}

TEST_F(LoadTurnsTest, WhatNobodyWaitsForIsNotLoaded) {
  auto dead = std::make_shared<const int>(0);
  const auto alive = std::make_shared<const int>(0);
  Add(LoadPayer{"a", 100, dead}, "on its way", base::kSecond);
  for (int i = 0; i < 10; ++i) {
    Add(LoadPayer{"a", 100, dead}, "dead", base::kSecond);
  }
  const auto shared = Add(LoadPayer{"a", 100, dead}, "shared", base::kSecond);
  turns_->Join(shared, LoadPayer{"a", 100, alive});
  Add(LoadPayer{"a", 100, alive}, "alive", base::kSecond);
  dead.reset();
  LoadAll();
  EXPECT_THAT(loaded_, ElementsAre("on its way", "shared", "alive"));
  EXPECT_EQ(told_, loaded_);
  EXPECT_EQ(unwanted_, std::vector<std::string>(10, "dead"));
  EXPECT_EQ(turns_->waiting(), 0U);
}

TEST_F(LoadTurnsTest, NothingIsToldAfterTheEnd) {
  Add("a", "1");
  Add("a", "2");
  turns_->Stop();
  Add("a", "3");
  LoadAll();
  EXPECT_THAT(told_, IsEmpty());
  EXPECT_EQ(turns_->waiting(), 0U);
}

// ---- through a session ------------------------------------------------------

class FairLoadsTest : public testing::CoreTest {
 protected:
  void LoadOne() {
    ASSERT_TRUE(loader.RunOne());
    while (loop.RunOne() || pager.RunOne()) {
    }
  }
  void Start(const TestSession& session, const std::string& model,
             std::vector<absl::Status>* answers) {
    StartUpload(session, model, model, answers);
    StartCreate(session, ++contexts_, model, answers);
  }

 private:
  uint32_t contexts_ = 0;
};

TEST_F(FairLoadsTest, ModelsOfAProgramThatHasDiedAreNotLoaded) {
  std::vector<absl::Status> ignored, mine;
  const TestSession enemy = Open(1, 1000);
  for (int i = 0; i < 20; ++i) {
    Start(enemy, absl::StrCat("name=enemys", i), &ignored);
  }
  const TestSession neighbour = Open(100, 1000);
  // One of them it wants, too.
  Start(neighbour, "name=enemys7", &mine);
  service->CloseSession(enemy->id());
  RunLoops();
  EXPECT_EQ(device.loads(), 2U) << "that which was under way, and its own";
  EXPECT_THAT(mine, ElementsAre(absl::OkStatus(), absl::OkStatus()));
  EXPECT_EQ(memory().other, 0U) << "uploads that nobody has let go";
  EXPECT_EQ(service->Models().size(), 2U);
}

TEST_F(FairLoadsTest, WhoComesAsALoadIsDroppedStillGetsIt) {
  std::vector<absl::Status> ignored, mine;
  const TestSession enemy = Open(1, 1000);
  Start(enemy, "name=first", &ignored);
  Start(enemy, "name=second", &ignored);
  service->CloseSession(enemy->id());
  // The first ends; the second is dropped, which the loop has yet to hear.
  ASSERT_TRUE(loader.RunOne());
  ASSERT_TRUE(loop.RunOne());
  const TestSession neighbour = Open(100, 1000);
  StartCreate(neighbour, 1, "name=second", &mine);
  RunLoops();
  EXPECT_THAT(mine, ElementsAre(absl::OkStatus()));
}

TEST_F(FairLoadsTest, NeighboursModelIsNextAfterTheOneThatIsLoaded) {
  std::vector<absl::Status> crowd;
  std::vector<TestSession> processes;
  for (int32_t pid = 1; pid <= 5; ++pid) {
    processes.push_back(Open(pid, 1000));
    for (int i = 0; i < 10; ++i) {
      Start(processes.back(), absl::StrCat("name=crowds", pid, i), &crowd);
    }
  }
  std::vector<absl::Status> mine;
  const TestSession neighbour = Open(100, 1001);
  Start(neighbour, "name=mine", &mine);
  LoadOne();
  EXPECT_THAT(mine, IsEmpty());
  LoadOne();
  EXPECT_THAT(mine, ElementsAre(absl::OkStatus(), absl::OkStatus()));
  EXPECT_EQ(crowd.size(), 2U) << "upload and context of one model";
}

TEST_F(FairLoadsTest, ModelThatACrowdHasQueuedComesInTheNeighboursTurn) {
  std::vector<absl::Status> crowd;
  const TestSession greedy = Open(1, 1000);
  for (int i = 0; i < 20; ++i) {
    Start(greedy, absl::StrCat("name=crowds", i), &crowd);
  }
  Start(greedy, "name=popular", &crowd);
  std::vector<absl::Status> mine;
  const TestSession neighbour = Open(2, 1001);
  Start(neighbour, "name=popular", &mine);
  LoadOne();
  LoadOne();
  EXPECT_THAT(mine, ElementsAre(absl::OkStatus(), absl::OkStatus()));
}

class CachedLoadsTest : public FairLoadsTest {
 protected:
  CachedLoadsTest() {
    options.cache_dir = folder_.path();
    device.set_compiler("compiler 1");
    StartService();
    EXPECT_EQ(Upload(Open(), "name=known"), absl::OkStatus());
    StartService();
  }
  ~CachedLoadsTest() override { StopService(); }

 private:
  testing::TemporaryFolder folder_;
};

TEST_F(CachedLoadsTest, CompiledModelWaitsForNoCompilation) {
  std::vector<absl::Status> crowd, mine;
  const TestSession session = Open();
  Start(session, "name=new", &crowd);
  StartCreate(session, 50, "name=known", &mine);
  // The loader is held: it compiles.
  while (loop.RunOne() || quick_loader.RunOne() || pager.RunOne()) {
  }
  EXPECT_THAT(mine, ElementsAre(absl::OkStatus()));
  EXPECT_THAT(crowd, IsEmpty());
}

TEST_F(CachedLoadsTest, FormThatIsOfNoUseIsCompiledInItsTurn) {
  device.set_compiler("compiler 1");
  for (const auto& file :
       std::filesystem::directory_iterator(options.cache_dir)) {
    if (file.path().extension() != ".compiled") continue;
    std::filesystem::resize_file(file.path(), 10);
  }
  EXPECT_EQ(Create(Open(), 1, "name=known"), absl::OkStatus());
  EXPECT_EQ(device.restores(), 0U);
}

}  // namespace
}  // namespace rknnd::core
