#include "daemon/transport/session/workers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "base/posix/clock.h"
#include "base/posix/event_loop.h"
#include "base/posix/mapping.h"
#include "base/posix/mutex.h"
#include "base/posix/socket.h"

namespace rknnd::transport {
namespace {

// Counts what reaches it and lets a test wait for a count.
class Counter {
 public:
  void Add() {
    base::MutexLock lock(mutex_);
    ++count_;
    changed_.notify_all();
  }
  void WaitFor(uint64_t count) {
    base::MutexLock lock(mutex_);
    while (count_ < count) changed_.wait(mutex_);
  }
  uint64_t count() {
    base::MutexLock lock(mutex_);
    return count_;
  }

 private:
  base::Mutex mutex_;
  base::CondVar changed_;
  uint64_t count_ RKNND_GUARDED_BY(mutex_) = 0;
};

class CountingGate final : public core::JobGate {
 public:
  absl::Status Submit(const core::JobSubmission&) override {
    jobs.Add();
    return absl::OkStatus();
  }
  Counter jobs;
};

class CountingRunner final : public core::Runner {
 public:
  void EnterWorker() override { entered.Add(); }
  void RunReady() override { runs.Add(); }
  Counter entered, runs;
};

// One client: its end of a ring.
class Client {
 public:
  Client() {
    auto created = RingEndpoint::Create();
    EXPECT_TRUE(created.ok());
    endpoint = *std::move(created);
    endpoint->Open(gate);
    auto mapped =
        base::Mapping::OfFd(endpoint->memory_fd(), 0, wire::kRingBytes,
                            base::Mapping::Access::kReadWrite);
    EXPECT_TRUE(mapped.ok());
    mapping = *std::move(mapped);
    ring = reinterpret_cast<wire::Ring*>(mapping.data());
  }

  void Ring() const { base::SignalEventFd(endpoint->doorbell_fd()); }
  void Push() const {
    const uint32_t tail = ring->header.tail.load();
    wire::Submission& entry = ring->submissions[tail % wire::kRingEntries];
    entry = {};
    entry.operation = 1;
    entry.slot = tail % wire::kRingEntries;
    entry.sequence = tail + 1;
    ring->header.tail.store(tail + 1);
  }

  std::shared_ptr<CountingGate> gate = std::make_shared<CountingGate>();
  std::shared_ptr<RingEndpoint> endpoint;
  base::Mapping mapping;
  wire::Ring* ring = nullptr;
};

class WorkersTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto loop = base::EventLoop::Create(&clock_);
    ASSERT_TRUE(loop.ok());
    loop_ = *std::move(loop);
    auto workers = Workers::Create(loop_.get());
    ASSERT_TRUE(workers.ok());
    workers_ = *std::move(workers);
    workers_->Start(2, &runner_,
                    [this](core::SessionId session, const absl::Status& why) {
                      violators_.push_back(session);
                      reason_ = why;
                      loop_->Quit();
                    });
  }
  void TearDown() override {
    workers_.reset();
    loop_.reset();
  }

  base::MonotonicClock clock_;
  std::unique_ptr<base::EventLoop> loop_;
  CountingRunner runner_;
  std::unique_ptr<Workers> workers_;
  std::vector<core::SessionId> violators_;
  absl::Status reason_;
};

TEST_F(WorkersTest, EachWorkerEntersOnce) {
  runner_.entered.WaitFor(2);
  EXPECT_EQ(runner_.entered.count(), 2U);
}

TEST_F(WorkersTest, DoorbellBringsEntriesToTheGateAndTheRunner) {
  const Client client;
  ASSERT_TRUE(workers_->Add(1, client.endpoint).ok());
  client.Push();
  client.Push();
  client.Ring();
  client.gate->jobs.WaitFor(2);
  runner_.runs.WaitFor(1);
}

TEST_F(WorkersTest, EveryRingIsHeardWithoutTheDoorbellBeingRead) {
  const Client client;
  ASSERT_TRUE(workers_->Add(1, client.endpoint).ok());
  for (uint64_t i = 1; i <= 1000; ++i) {
    client.Push();
    client.Ring();
    client.gate->jobs.WaitFor(i);
  }
  uint64_t count = 0;
  ASSERT_EQ(read(client.endpoint->doorbell_fd(), &count, sizeof count),
            static_cast<ssize_t>(sizeof count));
  EXPECT_EQ(count, 1000U);
}

TEST_F(WorkersTest, DoorbellRungBeforeTheSessionWasAddedIsHeard) {
  const Client client;
  client.Push();
  client.Ring();
  ASSERT_TRUE(workers_->Add(1, client.endpoint).ok());
  client.gate->jobs.WaitFor(1);
}

TEST_F(WorkersTest, WakeOneRunsWhatIsReady) {
  workers_->WakeOne();
  runner_.runs.WaitFor(1);
}

TEST_F(WorkersTest, ViolationIsToldOnTheLoop) {
  const Client client;
  ASSERT_TRUE(workers_->Add(5, client.endpoint).ok());
  client.ring->header.tail.store(5000);
  client.Ring();
  loop_->Run();
  EXPECT_THAT(violators_, ::testing::ElementsAre(5U));
  EXPECT_TRUE(absl::IsFailedPrecondition(reason_));
}

TEST_F(WorkersTest, RemovedSessionIsNotServed) {
  const Client gone;
  const Client stays;
  ASSERT_TRUE(workers_->Add(1, gone.endpoint).ok());
  ASSERT_TRUE(workers_->Add(2, stays.endpoint).ok());
  workers_->Remove(1);
  gone.Push();
  gone.Ring();
  stays.Push();
  stays.Ring();
  stays.gate->jobs.WaitFor(1);
  EXPECT_EQ(gone.gate->jobs.count(), 0U);
}

TEST_F(WorkersTest, SessionsComeAndGoWhileTheyAreServed) {
  for (core::SessionId session = 1; session <= 500; ++session) {
    const Client client;
    ASSERT_TRUE(workers_->Add(session, client.endpoint).ok());
    client.Push();
    client.Ring();
    workers_->Remove(session);
    client.Ring();
  }
  const Client last;
  ASSERT_TRUE(workers_->Add(1000, last.endpoint).ok());
  last.Push();
  last.Ring();
  last.gate->jobs.WaitFor(1);
}

TEST_F(WorkersTest, RingingWithAnEmptyRingEndsInABoundedNumberOfDrains) {
  const Client flood;
  const Client neighbour;
  ASSERT_TRUE(workers_->Add(1, flood.endpoint).ok());
  ASSERT_TRUE(workers_->Add(2, neighbour.endpoint).ok());
  while (workers_->counters().penalties.load() == 0) flood.Ring();
  const uint64_t before = workers_->counters().empty.load();

  // Out of the epoll set, its doorbell reaches nobody; the loop, whose timer
  // would bring it back, does not run in this test.
  for (int i = 0; i < 10'000; ++i) flood.Ring();
  for (uint64_t i = 1; i <= 100; ++i) {
    neighbour.Push();
    neighbour.Ring();
    neighbour.gate->jobs.WaitFor(i);
  }

  // A worker may have been on its way when the doorbell left.
  EXPECT_LE(workers_->counters().empty.load(), before + 4);
  EXPECT_EQ(neighbour.gate->jobs.count(), 100U);
}

TEST_F(WorkersTest, EntriesOfAFloodingSessionAreFoundByTheTimer) {
  const Client flood;
  ASSERT_TRUE(workers_->Add(1, flood.endpoint).ok());
  while (workers_->counters().penalties.load() == 0) flood.Ring();
  flood.Push();
  std::thread loop([this] { loop_->Run(); });
  flood.gate->jobs.WaitFor(1);
  loop_->Quit();
  loop.join();
}

TEST_F(WorkersTest, FloodingSessionComesBackAfterItsPenalty) {
  const Client flood;
  ASSERT_TRUE(workers_->Add(1, flood.endpoint).ok());
  while (workers_->counters().penalties.load() == 0) flood.Ring();
  const uint64_t before = workers_->counters().wakes.load();
  std::thread loop([this] { loop_->Run(); });
  // Its doorbell is back when it wakes a worker: a second flood is possible.
  while (workers_->counters().penalties.load() == 1) {
    flood.Ring();
    std::this_thread::yield();
  }
  EXPECT_GT(workers_->counters().wakes.load(), before);
  loop_->Quit();
  loop.join();
}

TEST_F(WorkersTest, ManyEntriesPayForManyEmptyWakes) {
  const Client client;
  ASSERT_TRUE(workers_->Add(1, client.endpoint).ok());
  // Two threads of a client that submit at once often ring for entries that
  // the other's doorbell has brought.
  for (uint64_t i = 1; i <= 2000; ++i) {
    client.Push();
    client.Ring();
    client.Ring();
    client.gate->jobs.WaitFor(i);
  }
  EXPECT_EQ(workers_->counters().penalties.load(), 0U);
}

TEST_F(WorkersTest, IdleWorkersDoNotWake) {
  runner_.entered.WaitFor(2);
  const Client client;
  ASSERT_TRUE(workers_->Add(1, client.endpoint).ok());
  client.Push();
  client.Ring();
  runner_.runs.WaitFor(1);
  EXPECT_EQ(workers_->counters().wakes.load(), 1U);
}

}  // namespace
}  // namespace rknnd::transport
