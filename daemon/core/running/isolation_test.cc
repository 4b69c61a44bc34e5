// Tests of what jobs find in internal memory, and of who clears it when.

#include "daemon/core/running/isolation.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "daemon/core/testing/core_fixture.h"
#include "gtest/gtest.h"

namespace rknnd::core {
namespace {

using testing::FakeDevice;
using testing::TestSession;

constexpr uint64_t kPiece = Arena::kPiece;
constexpr uint64_t kManyPieces = 3 * kPiece + 1000;
constexpr uint32_t kCore0 = 1, kCore1 = 2, kAllCores = 7;

class IsolationTest : public testing::CoreTest {
 protected:
  // A model whose jobs leave `mark` in so many bytes.
  static std::string Model(uint64_t internal, int mark,
                           const std::string& more = "") {
    return "bytes=16 internal=" + std::to_string(internal) +
           " mark=" + std::to_string(mark) + more;
  }
  // Context 1 of a session of its own, on core 0.
  TestSession OpenWith(uint64_t internal, int mark) {
    TestSession session = Open();
    MakeReady(session, 1, Model(internal, mark), /*flags=*/0, kCore0);
    return session;
  }
  void Run(const TestSession& session, uint32_t context = 1) {
    const size_t before = session.sink->count();
    ASSERT_TRUE(Submit(session, context, 0, ++sequence_).ok());
    RunReady();
    ASSERT_EQ(session.sink->count(), before + 1);
    ASSERT_TRUE(session.sink->last().status.ok());
  }
  void ClearIdle() { service->runner().ClearIdle(); }
  FakeDevice::Run LastRun() const { return device.runs().back(); }

  uint32_t sequence_ = 0;
};

TEST_F(IsolationTest, JobOfTheSameSessionClearsNothing) {
  const TestSession session = OpenWith(8192, 1);
  Run(session);
  EXPECT_EQ(LastRun().found, 0U);
  Run(session);
  EXPECT_EQ(LastRun().found, 8192U);
  EXPECT_FALSE(LastRun().found_others);
  EXPECT_EQ(device.cleared(), 0U);
}

TEST_F(IsolationTest, JobOfAnotherSessionFindsZeros) {
  const TestSession first = OpenWith(8192, 1);
  const TestSession second = OpenWith(8192, 2);
  Run(first);
  Run(second);
  EXPECT_EQ(LastRun().found, 0U);
  EXPECT_EQ(device.cleared(), 8192U);
  Run(first);
  EXPECT_EQ(LastRun().found, 0U);
}

TEST_F(IsolationTest, AllThatEarlierJobsOfASessionUsedIsClearedForAnother) {
  const TestSession first = OpenWith(8192, 1);
  MakeReady(first, 2, Model(100, 3), /*flags=*/0, kCore0);
  const TestSession second = OpenWith(8000, 2);
  Run(first, 1);
  Run(first, 2);
  Run(second);
  EXPECT_EQ(LastRun().found, 0U);
  EXPECT_EQ(device.cleared(), 8192U);
}

TEST_F(IsolationTest, FailedJobsMemoryIsClearedForAnotherSession) {
  const TestSession first = OpenWith(8192, 1);
  const TestSession second = OpenWith(8192, 2);
  device.FailJobs(absl::InternalError("the core stalled"));
  ASSERT_TRUE(Submit(first, 1, 0).ok());
  RunReady();
  device.FailJobs(absl::OkStatus());
  Run(second);
  EXPECT_EQ(LastRun().found, 0U);
}

TEST_F(IsolationTest, CoreIsFreeBeforeItsMemoryIsCleared) {
  const TestSession session = OpenWith(8192, 1);
  Run(session);
  EXPECT_EQ(service->Status().jobs_running, 0U);
  EXPECT_EQ(device.cleared(), 0U);
}

TEST_F(IsolationTest, IdleCoreIsClearedPieceByPieceAndOnce) {
  const TestSession session = OpenWith(kManyPieces, 1);
  Run(session);
  ClearIdle();
  const std::vector<FakeDevice::Cleared> pieces = {
      {3 * kPiece, 1000}, {2 * kPiece, kPiece}, {kPiece, kPiece}, {0, kPiece}};
  EXPECT_EQ(device.clears(), pieces);
  ClearIdle();
  EXPECT_EQ(device.cleared(), kManyPieces);
  Run(session);
  EXPECT_EQ(LastRun().found, 0U);
}

TEST_F(IsolationTest, WorkerThatFindsNothingToRunClears) {
  const TestSession session = OpenWith(kManyPieces, 1);
  Run(session);
  RunReady();
  EXPECT_EQ(device.cleared(), kManyPieces);
}

TEST_F(IsolationTest, ClearingStopsWhenItsCoreIsGivenToAJobAndGoesOnLater) {
  const TestSession session = OpenWith(kManyPieces, 1);
  MakeReady(session, 2, "bytes=16", /*flags=*/0, kCore0);
  Run(session);
  device.HoldJobs(true);
  device.OnClear([this, &session] {
    device.OnClear(nullptr);
    ASSERT_TRUE(Submit(session, 2, 0, 7).ok());
    RunReady();
  });
  ClearIdle();
  EXPECT_EQ(device.clears().size(), 1U);
  ClearIdle();
  EXPECT_EQ(device.clears().size(), 1U);
  const uint32_t woken = waker.count;
  ASSERT_TRUE(device.Release());
  EXPECT_EQ(waker.count, woken + 1);
  RunReady();
  EXPECT_EQ(device.cleared(), kManyPieces);
}

TEST_F(IsolationTest, JobThatBeginsWaitsForThePieceThatIsBeingCleared) {
  const TestSession first = OpenWith(kManyPieces, 1);
  const TestSession second = OpenWith(kManyPieces, 2);
  Run(first);
  std::atomic<bool> clearing{false}, go_on{false};
  device.OnClear([&] {
    device.OnClear(nullptr);
    clearing = true;
    while (!go_on) std::this_thread::yield();
  });
  std::thread clearer([this] { ClearIdle(); });
  while (!clearing) std::this_thread::yield();
  ASSERT_TRUE(Submit(second, 1, 0).ok());
  std::thread worker([this] { RunReady(); });
  while (service->Status().jobs_running == 0) std::this_thread::yield();
  EXPECT_EQ(device.runs().size(), 1U);
  go_on = true;
  clearer.join();
  worker.join();
  ASSERT_EQ(device.runs().size(), 2U);
  EXPECT_EQ(LastRun().found, 0U);
  EXPECT_EQ(second.sink->count(), 1U);
}

TEST_F(IsolationTest, SecondWorkerDoesNotClearWhatOneIsClearing) {
  const TestSession session = OpenWith(kManyPieces, 1);
  Run(session);
  device.OnClear([this] {
    device.OnClear(nullptr);
    ClearIdle();
    EXPECT_EQ(device.clears().size(), 1U);
  });
  ClearIdle();
  EXPECT_EQ(device.cleared(), kManyPieces);
}

TEST_F(IsolationTest, WhoFindsAnArenaBeingClearedDoesNotWait) {
  const Paging paging{&device, &heaps, &loop, &pager};
  auto memory = MakeMemory(paging, kManyPieces, 0);
  ASSERT_TRUE(memory.ok());
  Arena arena(paging, Charge(), *std::move(memory), kManyPieces);
  arena.Begin(1, kManyPieces);
  arena.End();
  const auto never = [] { return false; };
  device.OnClear([&] {
    const size_t pieces = device.clears().size();
    EXPECT_TRUE(arena.Clear(never));
    EXPECT_EQ(device.clears().size(), pieces);
  });
  EXPECT_TRUE(arena.Clear(never));
  EXPECT_EQ(device.cleared(), kManyPieces);
}

TEST_F(IsolationTest, WorkerThatGoesOnElsewhereHasItsCoreClearedByAnother) {
  const TestSession session = OpenWith(8192, 1);
  MakeReady(session, 2, Model(8192, 1), /*flags=*/0, kCore1);
  Run(session, 1);
  Run(session, 1);
  EXPECT_EQ(waker.count, 0U);
  Run(session, 2);
  EXPECT_EQ(waker.count, 1U);
}

TEST_F(IsolationTest, WorkerIsWokenToClearWhatADeviceThreadEnded) {
  const TestSession session = OpenWith(8192, 1);
  device.HoldJobs(true);
  ASSERT_TRUE(Submit(session, 1, 0).ok());
  RunReady();
  ASSERT_TRUE(device.Release());
  EXPECT_EQ(waker.count, 1U);
  RunReady();
  EXPECT_EQ(device.cleared(), 8192U);
}

TEST_F(IsolationTest, EveryArenaOfAGangIsItsSessions) {
  const TestSession first = Open();
  MakeReady(first, 1, Model(8192, 1, " batch=3"), /*flags=*/0, kAllCores);
  const TestSession second = Open();
  MakeReady(second, 1, Model(8192, 2), /*flags=*/0, kCore1);
  Run(first);
  EXPECT_EQ(LastRun().gang_internal, 2U);
  Run(second);
  EXPECT_EQ(LastRun().found, 0U);
  EXPECT_EQ(device.cleared(), 8192U);
  // Two of them have its own bytes, and one another's.
  Run(first);
  EXPECT_EQ(LastRun().found, 2 * 8192U);
  EXPECT_FALSE(LastRun().found_others);
  ClearIdle();
  Run(second);
  Run(first);
  EXPECT_EQ(LastRun().found, 0U);
}

TEST_F(IsolationTest, HungJobsMemoryIsLeftAloneUntilTheDeviceGivesItBack) {
  const TestSession session = OpenWith(8192, 1);
  device.HoldJobs(true);
  ASSERT_TRUE(Submit(session, 1, 0).ok());
  RunReady();
  PassTime(options.scheduling.hang);
  ASSERT_EQ(session.sink->count(), 1U);
  service->CloseSession(session->id());
  ClearIdle();
  EXPECT_EQ(device.cleared(), 0U);
  ASSERT_TRUE(device.Release());
  ClearIdle();
  EXPECT_EQ(device.cleared(), 8192U);
}

TEST_F(IsolationTest, NothingIsLeftOfASessionThatEnds) {
  const TestSession gone = OpenWith(8192, 1);
  const TestSession other = OpenWith(8192, 2);
  Run(gone);
  service->CloseSession(gone->id());
  ClearIdle();
  EXPECT_EQ(device.cleared(), 8192U);
  Run(other);
  EXPECT_EQ(LastRun().found, 0U);
}

TEST_F(IsolationTest, ArenaThatIsReplacedTakesItsBytesAlong) {
  const TestSession first = OpenWith(8192, 1);
  Run(first);
  const TestSession second = OpenWith(40960, 2);
  Run(second);
  EXPECT_EQ(LastRun().found, 0U);
  EXPECT_EQ(device.cleared(), 0U);
  ClearIdle();
  EXPECT_EQ(device.cleared(), 40960U);
}

TEST_F(IsolationTest, ArenaThatIsGoneNeedsNoClearing) {
  const TestSession session = OpenWith(8192, 1);
  Run(session);
  ASSERT_TRUE(session->DestroyContext(1).ok());
  Advance(options.model_grace);
  ASSERT_EQ(memory().internal, 0U);
  ClearIdle();
  EXPECT_EQ(device.cleared(), 0U);
}

TEST_F(IsolationTest, MemoryOfOneContextAloneIsClearedBehindTheJob) {
  options.vendor_sharing = true;
  StopService();
  StartService();
  const TestSession session = OpenWith(8192, 1);
  Run(session);
  EXPECT_EQ(device.cleared(), 8192U);
}

TEST_F(IsolationTest, SwitchedOffNothingIsCleared) {
  options.isolate = false;
  StopService();
  StartService();
  const TestSession first = OpenWith(8192, 1);
  const TestSession second = OpenWith(8192, 2);
  Run(first);
  ClearIdle();
  Run(second);
  EXPECT_TRUE(LastRun().found_others);
  EXPECT_EQ(device.cleared(), 0U);
}

// Which of a session's slots are free.
class Slots final : public CompletionSink {
 public:
  void Complete(const JobCompletion& completion) override {
    if (!completion.status.ok()) failed = true;
    free[completion.slot] = true;
  }
  std::array<std::atomic<bool>, 3> free{true, true, true};
  std::atomic<bool> failed{false};
};

TEST_F(IsolationTest, NoJobMeetsAnothersBytesHoweverWorkersRace) {
  constexpr uint32_t kRounds = 200;
  const std::array<std::shared_ptr<Slots>, 2> slots = {
      std::make_shared<Slots>(), std::make_shared<Slots>()};
  std::vector<TestSession> sessions;
  for (int i = 0; i < 2; ++i) {
    auto opened = service->OpenSession({}, slots[i], nullptr);
    ASSERT_TRUE(opened.ok());
    sessions.push_back({*opened, nullptr, nullptr});
    MakeReady(sessions[i], 1, Model(2 * kPiece + 500, i + 1), 0, kCore0);
    MakeReady(sessions[i], 2, Model(kPiece + 500, i + 1));
    MakeReady(sessions[i], 3, Model(700, i + 1, " batch=3"), 0, kAllCores);
  }
  std::atomic<bool> stop{false};
  std::vector<std::thread> workers;
  for (int i = 0; i < 4; ++i) {
    workers.emplace_back([this, &stop, i] {
      while (!stop) {
        RunReady();
        if (i % 2 == 0) ClearIdle();
        std::this_thread::yield();
      }
    });
  }
  std::vector<std::thread> clients;
  for (int i = 0; i < 2; ++i) {
    clients.emplace_back([&, i] {
      for (uint32_t round = 1; round <= kRounds; ++round) {
        for (uint32_t slot = 0; slot < 3; ++slot) {
          while (!slots[i]->free[slot].exchange(false)) {
            std::this_thread::yield();
          }
          EXPECT_TRUE(Submit(sessions[i], slot + 1, slot, round).ok());
        }
      }
      for (auto& free : slots[i]->free) {
        while (!free) std::this_thread::yield();
      }
    });
  }
  for (std::thread& client : clients) client.join();
  stop = true;
  for (std::thread& worker : workers) worker.join();

  const std::vector<FakeDevice::Run> runs = device.runs();
  EXPECT_EQ(runs.size(), 2 * 3 * kRounds);
  EXPECT_EQ(std::count_if(runs.begin(), runs.end(),
                          [](const auto& run) { return run.found_others; }),
            0);
  EXPECT_FALSE(slots[0]->failed || slots[1]->failed);
  // And what the last of them left is cleared.
  ClearIdle();
  const uint64_t cleared = device.cleared();
  const TestSession third = Open();
  MakeReady(third, 1, Model(700, 3, " batch=3"), 0, kAllCores);
  Run(third);
  EXPECT_EQ(LastRun().found, 0U);
  EXPECT_EQ(device.cleared(), cleared);
}

}  // namespace
}  // namespace rknnd::core
