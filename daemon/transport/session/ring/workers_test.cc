// Tests of what wakes workers, whom they serve then, and what a flood of
// doorbells costs.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "base/posix/clock.h"
#include "base/posix/socket.h"
#include "daemon/transport/session/testing/workers_fixture.h"

namespace rknnd::transport {
namespace {

using testing::Client;
using testing::Counter;
using testing::WorkersFixture;

// Of a client that is quicker than any worker: whenever an entry is taken there
// is the next one, and one that is answered at once.
class HungryGate final : public core::JobGate {
 public:
  absl::Status Submit(const core::JobSubmission& /*job*/) override {
    jobs.Add();
    if (!stop.load()) PushTwo();
    return absl::OkStatus();
  }
  void PushTwo() const {
    const uint32_t tail = ring->header.tail.load();
    for (const uint32_t at : {tail, tail + 1}) {
      wire::Submission& entry = ring->submissions[at % wire::kRingEntries];
      entry = {};
      entry.operation = 1;
      entry.slot = at % wire::kRingEntries;
      entry.sequence = at + 1;
      entry.flags = at == tail ? 0x8000U : 0U;  // refused
    }
    ring->header.tail.store(tail + 2);
    if (ring->header.polled.load() == 0) base::SignalEventFd(doorbell);
  }

  Counter jobs;
  std::atomic<bool> stop{false};
  wire::Ring* ring = nullptr;
  int doorbell = -1;
};

class WorkersTest : public WorkersFixture {};

TEST_F(WorkersTest, EachWorkerEntersOnce) {
  runner_.entered.WaitFor(4);  // two are for busy sessions
  EXPECT_EQ(runner_.entered.count(), 4U);
}

TEST_F(WorkersTest, DoorbellBringsEntriesToTheGateAndTheRunner) {
  const Client client;
  ASSERT_TRUE(workers_->Add(1, client.endpoint, "user 1").ok());
  client.Push();
  client.Push();
  client.Ring();
  client.gate->jobs.WaitFor(2);
  runner_.runs.WaitFor(1);
}

TEST_F(WorkersTest, EveryRingIsHeardWithoutTheDoorbellBeingRead) {
  const Client client;
  ASSERT_TRUE(workers_->Add(1, client.endpoint, "user 1").ok());
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
  ASSERT_TRUE(workers_->Add(1, client.endpoint, "user 1").ok());
  client.gate->jobs.WaitFor(1);
}

TEST_F(WorkersTest, WakeOneRunsWhatIsReady) {
  workers_->WakeOne();
  runner_.runs.WaitFor(1);
}

TEST_F(WorkersTest, WorkerThatHasNothingToDoSeesToIdleCoresBeforeItSleeps) {
  const Client client;
  ASSERT_TRUE(workers_->Add(1, client.endpoint, "user 1").ok());
  client.Push();
  client.Ring();
  runner_.runs.WaitFor(1);
  runner_.rests.WaitFor(1);
}

TEST_F(WorkersTest, ViolationIsToldOnTheLoop) {
  const Client client;
  ASSERT_TRUE(workers_->Add(5, client.endpoint, "user 1").ok());
  client.ring->header.tail.store(5000);
  client.Ring();
  loop_->Run();
  EXPECT_THAT(violators_, ::testing::ElementsAre(5U));
  EXPECT_TRUE(absl::IsFailedPrecondition(reason_));
}

TEST_F(WorkersTest, RemovedSessionIsNotServed) {
  const Client gone;
  const Client stays;
  ASSERT_TRUE(workers_->Add(1, gone.endpoint, "user 1").ok());
  ASSERT_TRUE(workers_->Add(2, stays.endpoint, "user 1").ok());
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
    ASSERT_TRUE(workers_->Add(session, client.endpoint, "user 1").ok());
    client.Push();
    client.Ring();
    workers_->Remove(session);
    client.Ring();
  }
  const Client last;
  ASSERT_TRUE(workers_->Add(1000, last.endpoint, "user 1").ok());
  last.Push();
  last.Ring();
  last.gate->jobs.WaitFor(1);
}

TEST_F(WorkersTest, RingingWithAnEmptyRingEndsInABoundedNumberOfDrains) {
  const Client flood;
  const Client neighbour;
  ASSERT_TRUE(workers_->Add(1, flood.endpoint, "user 1").ok());
  ASSERT_TRUE(workers_->Add(2, neighbour.endpoint, "user 1").ok());
  while (workers_->counts().penalties == 0) flood.Ring();
  const uint64_t before = workers_->counts().empty;

  // Out of the epoll set, its doorbell reaches nobody; the loop, whose timer
  // would bring it back, does not run in this test.
  for (int i = 0; i < 10'000; ++i) flood.Ring();
  for (uint64_t i = 1; i <= 100; ++i) {
    neighbour.Push();
    neighbour.Ring();
    neighbour.gate->jobs.WaitFor(i);
  }

  // A worker may have been on its way when the doorbell left.
  EXPECT_LE(workers_->counts().empty, before + 4);
  EXPECT_EQ(neighbour.gate->jobs.count(), 100U);
}

TEST_F(WorkersTest, EntriesOfAFloodingSessionAreFoundByTheTimer) {
  const Client flood;
  ASSERT_TRUE(workers_->Add(1, flood.endpoint, "user 1").ok());
  while (workers_->counts().penalties == 0) flood.Ring();
  flood.Push();
  std::thread loop([this] { loop_->Run(); });
  flood.gate->jobs.WaitFor(1);
  loop_->Quit();
  loop.join();
}

TEST_F(WorkersTest, FloodingSessionComesBackAfterItsPenalty) {
  const Client flood;
  ASSERT_TRUE(workers_->Add(1, flood.endpoint, "user 1").ok());
  while (workers_->counts().penalties == 0) flood.Ring();
  const uint64_t before = workers_->counts().wakes;
  std::thread loop([this] { loop_->Run(); });
  // Its doorbell is back when it wakes a worker: a second flood is possible.
  while (workers_->counts().penalties == 1) {
    flood.Ring();
    std::this_thread::yield();
  }
  EXPECT_GT(workers_->counts().wakes, before);
  loop_->Quit();
  loop.join();
}

TEST_F(WorkersTest, ManyEntriesPayForManyEmptyWakes) {
  const Client client;
  ASSERT_TRUE(workers_->Add(1, client.endpoint, "user 1").ok());
  // Two threads of a client that submit at once often ring for entries that
  // the other's doorbell has brought.
  for (uint64_t i = 1; i <= 2000; ++i) {
    client.Push();
    client.Ring();
    client.Ring();
    client.gate->jobs.WaitFor(i);
  }
  EXPECT_EQ(workers_->counts().penalties, 0U);
}

TEST_F(WorkersTest, TimeOfExpireByBringsALookForWhatExpired) {
  workers_->ExpireBy(clock_.Now() + 2 * base::kMillisecond);
  runner_.looks.WaitFor(1);
  runner_.runs.WaitFor(1);
}

TEST_F(WorkersTest, TimeThatIsOverIsLookedAtAtOnce) {
  workers_->ExpireBy(1);
  runner_.looks.WaitFor(1);
  workers_->ExpireBy(-5);
  runner_.looks.WaitFor(2);
}

TEST_F(WorkersTest, EarlierTimeStaysInForce) {
  const base::Nanoseconds soon = clock_.Now() + 5 * base::kMillisecond;
  workers_->ExpireBy(soon + 3600 * base::kSecond);
  workers_->ExpireBy(soon);
  workers_->ExpireBy(soon + 1800 * base::kSecond);
  runner_.looks.WaitFor(1);
  EXPECT_GE(clock_.Now(), soon);
}

TEST_F(WorkersTest, TimesOfAnotherClockAreMeantByIt) {
  workers_.reset();
  base::FakeClock clock;
  Start({&clock, 0});
  // By CLOCK_MONOTONIC it would be over long since.
  workers_->ExpireBy(clock.Now() + 3600 * base::kSecond);
  workers_->WakeOne();
  runner_.runs.WaitFor(1);
  EXPECT_EQ(runner_.looks.count(), 0U);
  workers_->ExpireBy(clock.Now());
  runner_.looks.WaitFor(1);
}

TEST_F(WorkersTest, FenceIsWaitedForInTheSameSet) {
  auto fence = base::MakeEventFd();
  ASSERT_TRUE(fence.ok());
  epoll_event event{};
  event.events = EPOLLIN | EPOLLET;
  event.data.u64 = EventTag(WorkerEvent::kFence, 77);
  ASSERT_EQ(
      epoll_ctl(workers_->epoll_fd(), EPOLL_CTL_ADD, fence->get(), &event), 0);
  base::SignalEventFd(fence->get());
  fences_.events.WaitFor(1);
  runner_.runs.WaitFor(1);
  EXPECT_EQ(fences_.last.load(), 77U);
}

TEST_F(WorkersTest, SlotOfARemovedSessionIsUsedAgain) {
  // More than any table's first part.
  std::vector<std::unique_ptr<Client>> clients;
  for (core::SessionId session = 1; session <= 200; ++session) {
    clients.push_back(std::make_unique<Client>());
    ASSERT_TRUE(
        workers_->Add(session, clients.back()->endpoint, "user 1").ok());
  }
  for (core::SessionId session = 1; session <= 200; session += 2) {
    workers_->Remove(session);
  }
  const Client late;
  ASSERT_TRUE(workers_->Add(300, late.endpoint, "user 1").ok());
  for (const auto& client : clients) {
    client->Push();
    client->Ring();
  }
  late.Push();
  late.Ring();
  late.gate->jobs.WaitFor(1);
  for (size_t i = 1; i < clients.size(); i += 2) {
    clients[i]->gate->jobs.WaitFor(1);
  }
  for (size_t i = 0; i < clients.size(); i += 2) {
    EXPECT_EQ(clients[i]->gate->jobs.count(), 0U);
  }
}

TEST_F(WorkersTest, ClientsThatAlwaysHaveAnEntryLeaveAWorkerToOthers) {
  std::array<Client, 3> greedy;  // more than there are workers
  std::array<std::shared_ptr<HungryGate>, 3> gates;
  for (size_t i = 0; i < greedy.size(); ++i) {
    gates[i] = std::make_shared<HungryGate>();
    gates[i]->ring = greedy[i].ring;
    gates[i]->doorbell = greedy[i].endpoint->doorbell_fd();
    greedy[i].endpoint->Open(gates[i]);
    ASSERT_TRUE(workers_->Add(i + 1, greedy[i].endpoint, "user 1").ok());
    gates[i]->PushTwo();
  }
  const Client neighbour;
  ASSERT_TRUE(workers_->Add(9, neighbour.endpoint, "user 1").ok());
  for (uint64_t i = 1; i <= 100; ++i) {
    neighbour.Push();
    neighbour.Ring();
    const base::Nanoseconds until = clock_.Now() + 20 * base::kSecond;
    while (neighbour.gate->jobs.count() < i && clock_.Now() < until) {
      std::this_thread::yield();
    }
    if (neighbour.gate->jobs.count() < i) break;
  }
  for (const auto& gate : gates) gate->stop.store(true);
  // A worker that looked at `stop` before goes on writing into the rings, which
  // end with this test's clients.
  workers_->Stop();
  EXPECT_EQ(neighbour.gate->jobs.count(), 100U);
}

TEST_F(WorkersTest, WorkersEndWhileAClientGoesOnSubmitting) {
  Client greedy;
  const auto gate = std::make_shared<HungryGate>();
  gate->ring = greedy.ring;
  gate->doorbell = greedy.endpoint->doorbell_fd();
  greedy.endpoint->Open(gate);
  ASSERT_TRUE(workers_->Add(1, greedy.endpoint, "user 1").ok());
  gate->PushTwo();
  gate->jobs.WaitFor(1000);
  std::atomic<bool> over{false};
  // Only where it would never end otherwise.
  std::thread rescue([&] {
    const base::Nanoseconds until = clock_.Now() + 60 * base::kSecond;
    while (!over.load() && clock_.Now() < until) std::this_thread::yield();
    gate->stop.store(true);
  });
  workers_->Stop();
  EXPECT_FALSE(gate->stop.load());
  over.store(true);
  rescue.join();
}

TEST_F(WorkersTest, BusySessionIsServedByWorkersOfItsOwn) {
  workers_.reset();
  // However slow this machine is, all come at once.
  const base::FakeClock clock;
  Start({&clock, 0});
  const Client greedy;
  const Client neighbour;
  ASSERT_TRUE(workers_->Add(1, greedy.endpoint, "user 1").ok());
  ASSERT_TRUE(workers_->Add(2, neighbour.endpoint, "user 2").ok());
  uint64_t submitted = 0;
  while (workers_->counts().busy_wakes < 1000) {
    greedy.Push();
    greedy.RingIfNeeded();
    greedy.gate->jobs.WaitFor(++submitted);
  }
  const uint64_t before = workers_->counts().busy_wakes;
  for (uint64_t i = 1; i <= 10; ++i) {
    neighbour.Push();
    neighbour.RingIfNeeded();
    neighbour.gate->jobs.WaitFor(i);
  }
  // One of the greedy session's may not have been counted before.
  EXPECT_LE(workers_->counts().busy_wakes, before + 1);
  EXPECT_EQ(greedy.gate->jobs.count(), submitted);
  workers_.reset();  // before its clock
}

TEST_F(WorkersTest, IdleWorkersDoNotWake) {
  runner_.entered.WaitFor(4);
  const Client client;
  ASSERT_TRUE(workers_->Add(1, client.endpoint, "user 1").ok());
  client.Push();
  client.Ring();
  runner_.runs.WaitFor(1);
  EXPECT_EQ(workers_->counts().wakes, 1U);
}

}  // namespace
}  // namespace rknnd::transport
