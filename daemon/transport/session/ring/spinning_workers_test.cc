// Tests of workers that wait awake for a while, and of clients that leave out
// the doorbell then.

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "base/posix/clock.h"
#include "base/posix/spinning.h"
#include "daemon/transport/session/testing/workers_fixture.h"

namespace rknnd::transport {
namespace {

using testing::Client;
using testing::WorkersFixture;

class SpinningWorkersTest : public WorkersFixture {
 protected:
  void SetUp() override {
    if (base::UsableCpus() < 2) {
      GTEST_SKIP() << "nobody waits awake where there is one CPU";
    }
    Start({nullptr, 200 * base::kMicrosecond});
  }
};

// Whether it rings or not, whoever submits is served: 20,000 entries at all
// distances from the moment at which a worker goes to sleep.
TEST_F(SpinningWorkersTest, NoEntryIsLostWhenTheDoorbellIsLeftOut) {
  const Client one;
  const Client two;
  ASSERT_TRUE(workers_->Add(1, one.endpoint, "user 1").ok());
  ASSERT_TRUE(workers_->Add(2, two.endpoint, "user 1").ok());
  for (uint64_t i = 1; i <= 20'000; ++i) {
    const Client& client = i % 7 == 0 ? two : one;
    const uint64_t jobs = client.gate->jobs.count();
    client.Push();
    client.RingIfNeeded();
    client.gate->jobs.WaitFor(jobs + 1);
    const base::Nanoseconds until =
        clock_.Now() + static_cast<base::Nanoseconds>(i * 37 % 260) *
                           base::kMicrosecond / (i % 16 == 0 ? 1 : 50);
    while (clock_.Now() < until) base::Relax();
  }
  EXPECT_EQ(one.gate->jobs.count() + two.gate->jobs.count(), 20'000U);
  EXPECT_EQ(workers_->counts().penalties, 0U);
}

// The other worker is woken in vain each time, which keeps both from sleeping.
TEST_F(SpinningWorkersTest, RingingInSpiteOfAWorkerThatLooksIsAFlood) {
  const Client client;
  ASSERT_TRUE(workers_->Add(1, client.endpoint, "user 1").ok());
  std::thread loop([this] { loop_->Run(); });
  for (uint64_t i = 1; workers_->counts().penalties == 0; ++i) {
    client.Push();
    client.Ring();
    client.gate->jobs.WaitFor(i);
  }
  loop_->Quit();
  loop.join();
}

TEST_F(SpinningWorkersTest, WorkerThatWaitsAwakeNeedsNoDoorbell) {
  const Client client;
  ASSERT_TRUE(workers_->Add(1, client.endpoint, "user 1").ok());
  // One entry that is caught will do; on a machine with other work a spin may
  // come to nothing, and then it is tried less often.
  while (workers_->counts().caught == 0) {
    const uint64_t jobs = client.gate->jobs.count();
    client.Push();
    client.RingIfNeeded();
    client.gate->jobs.WaitFor(jobs + 1);
  }
  EXPECT_GE(workers_->counts().spins, workers_->counts().caught);
}

TEST_F(SpinningWorkersTest, NobodyStaysAwakeForLong) {
  const Client client;
  ASSERT_TRUE(workers_->Add(1, client.endpoint, "user 1").ok());
  uint64_t jobs = 0;
  // The first may find no other worker asleep yet.
  while (workers_->counts().spins == 0) {
    client.Push();
    client.RingIfNeeded();
    client.gate->jobs.WaitFor(++jobs);
  }
  while (client.ring->header.polled.load() != 0) std::this_thread::yield();
  workers_->Stop();
  // A doorbell wakes one worker at most. It waits awake once for that, and once
  // more for each entry that this brought: also for one whose doorbell, rung
  // just before the wait ended, then wakes another worker for nothing.
  const WorkerCounts counts = workers_->counts();
  EXPECT_LE(counts.wakes, jobs);
  EXPECT_LE(counts.spins, counts.wakes + counts.caught);
}

TEST_F(SpinningWorkersTest, SessionsComeAndGoWhileTheyAreLookedAt) {
  for (core::SessionId session = 1; session <= 500; ++session) {
    const Client client;
    ASSERT_TRUE(workers_->Add(session, client.endpoint, "user 1").ok());
    client.Push();
    client.RingIfNeeded();
    client.gate->jobs.WaitFor(1);
    client.Push();
    workers_->Remove(session);
    client.Ring();
  }
}

TEST_F(SpinningWorkersTest, TailThatMovesForNothingIsAFloodToo) {
  const Client client;
  const Client neighbour;
  ASSERT_TRUE(workers_->Add(1, client.endpoint, "user 1").ok());
  ASSERT_TRUE(workers_->Add(2, neighbour.endpoint, "user 1").ok());
  client.Push();
  client.Ring();
  client.gate->jobs.WaitFor(1);
  // There and gone, as fast as it can.
  std::atomic<bool> stop{false};
  std::thread scribbler([&] {
    while (!stop.load()) {
      client.ring->header.tail.store(2);
      client.ring->header.tail.store(1);
      client.Ring();
    }
  });
  for (uint64_t i = 1; i <= 500; ++i) {
    neighbour.Push();
    neighbour.RingIfNeeded();
    neighbour.gate->jobs.WaitFor(i);
  }
  stop.store(true);
  scribbler.join();
  EXPECT_EQ(neighbour.gate->jobs.count(), 500U);
}

}  // namespace
}  // namespace rknnd::transport
