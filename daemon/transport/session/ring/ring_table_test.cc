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
    ASSERT_TRUE(table_.Add(1, client_.endpoint).ok());
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
  RingTable table_{epoll_.get()};
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

}  // namespace
}  // namespace rknnd::transport
