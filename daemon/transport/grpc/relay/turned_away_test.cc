#include "daemon/transport/grpc/relay/turned_away.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <memory>
#include <vector>

#include "base/posix/socket.h"

namespace rknnd::transport {
namespace {

class TurnedAwayTest : public ::testing::Test {
 protected:
  static constexpr size_t kMost = 3;

  // The peer's end.
  base::UniqueFd TurnAway() {
    auto ends = *base::BytePair();
    turned_away_.Add(std::move(ends.second));
    return std::move(ends.first);
  }
  static bool HasHeard(const base::UniqueFd& peer) {
    pollfd entry{peer.get(), POLLIN, 0};
    return poll(&entry, 1, 0) == 1;
  }
  void Pass(base::Nanoseconds time) {
    clock_.Advance(time);
    loop_->Post([this] { loop_->Quit(); });
    loop_->Run();
  }

  base::FakeClock clock_;
  std::unique_ptr<base::EventLoop> loop_ = *base::EventLoop::Create(&clock_);
  TurnedAway turned_away_{kMost, loop_.get()};
};

TEST_F(TurnedAwayTest, PeersHearOfItAfterAWhile) {
  const base::UniqueFd first = TurnAway();
  Pass(TurnedAway::kHeld - 10 * base::kMillisecond);
  const base::UniqueFd second = TurnAway();
  EXPECT_FALSE(HasHeard(first));
  Pass(10 * base::kMillisecond);
  EXPECT_TRUE(HasHeard(first));
  EXPECT_FALSE(HasHeard(second));
  Pass(TurnedAway::kHeld - 10 * base::kMillisecond);
  EXPECT_TRUE(HasHeard(second));
  EXPECT_EQ(turned_away_.size(), 0U);
}

TEST_F(TurnedAwayTest, WhereThereAreTooManyTheOldestHearAtOnce) {
  std::vector<base::UniqueFd> peers;
  for (size_t i = 0; i <= kMost; ++i) peers.push_back(TurnAway());
  EXPECT_TRUE(HasHeard(peers[0]));
  for (size_t i = 1; i <= kMost; ++i) EXPECT_FALSE(HasHeard(peers[i])) << i;
  EXPECT_EQ(turned_away_.size(), kMost);
}

TEST_F(TurnedAwayTest, AtTheEndAllHear) {
  const base::UniqueFd peer = TurnAway();
  turned_away_.Clear();
  EXPECT_TRUE(HasHeard(peer));
  // And no timer is left that would close others too early.
  Pass(TurnedAway::kHeld / 2);
  const base::UniqueFd other = TurnAway();
  Pass(TurnedAway::kHeld / 2);
  EXPECT_FALSE(HasHeard(other));
}

}  // namespace
}  // namespace rknnd::transport
