// What a session's doorbell costs it, without threads: each wake-up is a call.

#include "daemon/transport/session/ring/ring_table.h"

#include <gtest/gtest.h>
#include <sys/epoll.h>

#include "base/posix/unique_fd.h"
#include "daemon/transport/session/testing/workers_fixture.h"

namespace rknnd::transport {
namespace {

using testing::Client;

// No session is ever refused so many rings.
constexpr int kManyRings = 10'000;

class RingTableTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(epoll_.valid());
    ASSERT_TRUE(table_.Add(1, client_.endpoint, "user 1").ok());
    epoll_event event{};
    ASSERT_EQ(epoll_wait(epoll_.get(), &event, 1, 0), 0);
    client_.Ring();
    ASSERT_EQ(epoll_wait(epoll_.get(), &event, 1, 0), 1);
    number_ = EventNumber(event.data.u64);
  }

  // A worker polls while the client submits, and takes the entry.
  void SubmitQuietly() {
    ASSERT_TRUE(client_.endpoint->BeginPolling());
    client_.Push();
    const uint32_t seen = client_.endpoint->taken();
    ASSERT_TRUE(client_.endpoint->EndPolling());
    const RingTable::Served served = table_.Serve(number_, seen);
    ASSERT_EQ(served.entries, 1U);
    ASSERT_FALSE(served.floods);
  }
  [[nodiscard]] bool RingsInVain() { return table_.Serve(number_).floods; }

  const base::UniqueFd epoll_{epoll_create1(EPOLL_CLOEXEC)};
  const base::UniqueFd busy_epoll_{epoll_create1(EPOLL_CLOEXEC)};
  base::FakeClock clock_;
  RingTable table_{epoll_.get(), busy_epoll_.get(), &clock_};
  Client client_;
  RingTable::Number number_ = 0;
};

TEST_F(RingTableTest, EachEntryPaysForOneRingInVain) {
  for (int i = 0; i < kManyRings; ++i) {
    client_.Push();
    ASSERT_FALSE(table_.Serve(number_).floods);
    ASSERT_FALSE(RingsInVain());
  }
}

TEST_F(RingTableTest, RingsForQuietEntriesAreAFlood) {
  int rings = 0;
  do {
    SubmitQuietly();
    ASSERT_LT(++rings, kManyRings);
  } while (!RingsInVain());
}

// The worker that was woken for nothing may be the one that finds the entry.
TEST_F(RingTableTest, TakingAQuietEntryDoesNotPayForTheWakeUp) {
  int rings = 0;
  RingTable::Served served;
  do {
    ASSERT_TRUE(client_.endpoint->BeginPolling());
    client_.Push();
    served = table_.Serve(number_);
    ASSERT_EQ(served.entries, 1U);
    ASSERT_FALSE(client_.endpoint->EndPolling());
    ASSERT_LT(++rings, kManyRings);
  } while (!served.floods);
}

TEST_F(RingTableTest, EntriesThatAreNoJobsPayForNothing) {
  RingTable::Served served;
  for (int rings = 0; !served.floods; ++rings) {
    client_.Push(/*operation=*/99);
    served = table_.Serve(number_);
    ASSERT_EQ(served.entries, 1U);
    ASSERT_LT(rings, kManyRings);
  }
  EXPECT_EQ(client_.gate->jobs.count(), 0U);
}

// A client may see too late that a worker looks.
TEST_F(RingTableTest, FewRingsForQuietEntriesAreFree) {
  for (int i = 0; i < kManyRings; ++i) {
    SubmitQuietly();
    if (i % 8 == 0) {
      ASSERT_FALSE(RingsInVain());
    }
  }
}

TEST_F(RingTableTest, EntriesOfAFloodAreStillTaken) {
  while (!RingsInVain()) {
  }
  table_.Punish(number_);
  EXPECT_EQ(table_.Hold(number_), nullptr);
  client_.Push();
  bool found = false;
  EXPECT_TRUE(table_.PollFlooders(&found));
  EXPECT_TRUE(found);
  ASSERT_EQ(table_.TakeFound().size(), 1U);
  EXPECT_EQ(table_.Serve(number_).entries, 1U);
}

class BusySessionTest : public RingTableTest {
 protected:
  void SetUp() override {
    RingTableTest::SetUp();
    ASSERT_TRUE(table_.Add(2, neighbour_.endpoint, "user 2").ok());
    Submit(neighbour_);
    neighbour_number_ = Woken(epoll_);
    ASSERT_EQ(table_.Serve(neighbour_number_).entries, 1U);
    ASSERT_EQ(Woken(epoll_), 0U);
  }

  static void Submit(const Client& client) {
    client.Push();
    client.Ring();
  }
  // Whose doorbell wakes a worker of this set; 0: nobody's.
  static RingTable::Number Woken(const base::UniqueFd& epoll) {
    epoll_event event{};
    return epoll_wait(epoll.get(), &event, 1, 0) == 1
               ? EventNumber(event.data.u64)
               : 0;
  }
  void SubmitAtOnce(const Client& client, RingTable::Number number,
                    uint32_t entries) {
    for (uint32_t i = 0; i < entries; ++i) {
      Submit(client);
      ASSERT_EQ(Woken(epoll_), number);
      ASSERT_EQ(table_.Serve(number).entries, 1U);
    }
  }
  void MakeBusy() {
    SubmitAtOnce(client_, number_, kSubmittedAtOnce + 1);
    // Its doorbell, which was rung before, wakes one of the others at once.
    ASSERT_EQ(Woken(busy_epoll_), number_);
    ASSERT_FALSE(table_.Serve(number_).floods);
  }

  Client neighbour_;
  RingTable::Number neighbour_number_ = 0;
};

TEST_F(BusySessionTest, WhoSubmitsTooOftenWakesWorkersOfTheOtherSet) {
  MakeBusy();
  for (int i = 0; i < 1000; ++i) {
    Submit(client_);
    ASSERT_EQ(Woken(epoll_), 0U);
    ASSERT_EQ(Woken(busy_epoll_), number_);
    ASSERT_EQ(table_.Serve(number_).entries, 1U);
  }
  EXPECT_EQ(table_.Hold(number_), nullptr);
}

TEST_F(BusySessionTest, NeighbourStaysWhereItWas) {
  MakeBusy();
  Submit(neighbour_);
  EXPECT_EQ(Woken(busy_epoll_), 0U);
  EXPECT_EQ(Woken(epoll_), neighbour_number_);
  EXPECT_NE(table_.Hold(neighbour_number_), nullptr);
}

TEST_F(BusySessionTest, SessionComesBackWhenItsTimeIsOver) {
  MakeBusy();
  clock_.Advance(kBusyFor);
  Submit(client_);
  ASSERT_EQ(Woken(busy_epoll_), number_);
  ASSERT_EQ(table_.Serve(number_).entries, 1U);
  ASSERT_EQ(Woken(epoll_), number_);
  Submit(client_);
  EXPECT_EQ(Woken(epoll_), number_);
  EXPECT_EQ(Woken(busy_epoll_), 0U);
}

TEST_F(BusySessionTest, SessionsOfOneUserCountTogether) {
  Client second;
  ASSERT_TRUE(table_.Add(3, second.endpoint, "user 1").ok());
  Submit(second);
  const RingTable::Number number = Woken(epoll_);
  ASSERT_EQ(table_.Serve(number).entries, 1U);
  SubmitAtOnce(client_, number_, kSubmittedAtOnce / 2);
  ASSERT_EQ(Woken(busy_epoll_), 0U);
  SubmitAtOnce(second, number, kSubmittedAtOnce / 2);
  EXPECT_EQ(Woken(busy_epoll_), number);
  // The other one has submitted no more than it may.
  Submit(client_);
  EXPECT_EQ(Woken(epoll_), number_);
  table_.Remove(3);
}

TEST_F(BusySessionTest, WhoIsAloneIsNeverBusy) {
  table_.Remove(2);
  SubmitAtOnce(client_, number_, 10 * kSubmittedAtOnce);
  EXPECT_EQ(Woken(busy_epoll_), 0U);
}

TEST_F(BusySessionTest, FloodOfABusySessionIsAFloodToo) {
  MakeBusy();
  while (!RingsInVain()) {
  }
  table_.Punish(number_);
  client_.Ring();
  EXPECT_EQ(Woken(busy_epoll_), 0U);
  client_.Push();
  bool found = false;
  EXPECT_TRUE(table_.PollFlooders(&found));
  EXPECT_TRUE(found);
}

TEST_F(BusySessionTest, EndOfABusySessionTakesItOutOfItsSet) {
  MakeBusy();
  table_.Remove(1);
  Submit(client_);
  EXPECT_EQ(Woken(busy_epoll_), 0U);
  EXPECT_EQ(table_.Serve(number_).session, 0U);
}

}  // namespace
}  // namespace rknnd::transport
