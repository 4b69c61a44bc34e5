#include "daemon/transport/grpc/turn_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <vector>

namespace rknnd::transport {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Answer = TurnQueue::Answer;

constexpr auto kNoDeadline = TurnQueue::kNoDeadline;

class TurnQueueTest : public ::testing::Test {
 protected:
  // By the name of its call.
  TurnQueue::Entered Add(const std::string& name, const std::string& account,
                         const std::string& connection,
                         base::Nanoseconds deadline = kNoDeadline) {
    const TurnQueue::Entered entered =
        queue_.Add(account, connection, deadline);
    names_[entered.ticket] = name;
    return entered;
  }
  std::string Next() {
    const auto ticket =
        queue_.TakeNext([](TurnQueue::Ticket) { return Answer::kGoes; });
    return ticket.has_value() ? names_[*ticket] : "";
  }
  std::vector<std::string> All() {
    std::vector<std::string> all;
    while (queue_.size() != 0) all.push_back(Next());
    return all;
  }
  std::vector<std::string> Names(const std::vector<TurnQueue::Ticket>& all) {
    std::vector<std::string> names;
    for (const TurnQueue::Ticket ticket : all) names.push_back(names_[ticket]);
    return names;
  }
  std::string Displaced(const TurnQueue::Entered& entered) {
    return entered.displaced.has_value() ? names_[*entered.displaced] : "";
  }

  base::FakeClock clock_;
  TurnQueue queue_{6, &clock_};
  std::map<TurnQueue::Ticket, std::string> names_;
};

TEST_F(TurnQueueTest, AccountsComeInTurnAndOfEachItsConnections) {
  Add("a1", "a", "a:1");
  Add("a2", "a", "a:1");
  Add("a3", "a", "a:1");
  Add("a4", "a", "a:2");
  Add("b1", "b", "b:1");
  Add("b2", "b", "b:1");
  EXPECT_THAT(All(), ElementsAre("a1", "b1", "a4", "b2", "a2", "a3"));
  EXPECT_EQ(Next(), "");
}

TEST_F(TurnQueueTest, WhoComesBackIsBehindThoseWhoWait) {
  Add("a1", "a", "a:1");
  Add("b1", "b", "b:1");
  Add("b2", "b", "b:1");
  EXPECT_EQ(Next(), "a1");
  Add("a2", "a", "a:1");
  EXPECT_THAT(All(), ElementsAre("b1", "a2", "b2"));
}

TEST_F(TurnQueueTest, AnAccountThatMustWaitHoldsUpNobody) {
  const TurnQueue::Ticket first = Add("a1", "a", "a:1").ticket;
  Add("b1", "b", "b:1");
  EXPECT_EQ(names_[*queue_.TakeNext([&](TurnQueue::Ticket ticket) {
              return ticket == first ? Answer::kAccountMustWait : Answer::kGoes;
            })],
            "b1");
  EXPECT_EQ(Next(), "a1");
}

TEST_F(TurnQueueTest, NobodyPassesOneThatIsTooLargeForNow) {
  const TurnQueue::Ticket large = Add("large", "a", "a:1").ticket;
  Add("small", "b", "b:1");
  EXPECT_FALSE(queue_
                   .TakeNext([&](TurnQueue::Ticket ticket) {
                     return ticket == large ? Answer::kAllMustWait
                                            : Answer::kGoes;
                   })
                   .has_value());
  EXPECT_THAT(All(), ElementsAre("large", "small"));
}

TEST_F(TurnQueueTest, WhatCanBeInTimeNoMoreIsTakenOut) {
  const base::Nanoseconds now = clock_.Now();
  Add("soon", "a", "a:1", now + 10);
  Add("later", "a", "a:1", now + 50);
  Add("whenever", "b", "b:1");
  EXPECT_THAT(queue_.TakeLate(9), IsEmpty());
  EXPECT_THAT(Names(queue_.TakeLate(10)), ElementsAre("soon"));
  clock_.Advance(30);
  EXPECT_THAT(queue_.TakeLate(10), IsEmpty());
  clock_.Advance(20);
  EXPECT_THAT(Names(queue_.TakeLate(0)), ElementsAre("later"));
  clock_.Advance(1000 * base::kSecond);
  EXPECT_THAT(queue_.TakeLate(base::kSecond), IsEmpty());
  EXPECT_EQ(Next(), "whenever");
}

TEST_F(TurnQueueTest, WhereItIsFullWhoHasMostMakesRoom) {
  for (const char* name : {"a1", "a2", "a3", "a4"}) Add(name, "a", "a:1");
  Add("a5", "a", "a:2");
  Add("b1", "b", "b:1");
  EXPECT_EQ(queue_.LargestAccount(), "a");
  // Whoever has most of the account that has most, and its newest.
  EXPECT_EQ(Displaced(Add("b2", "b", "b:1")), "a4");
  EXPECT_EQ(Displaced(Add("b3", "b", "b:1")), "a3");
  // Of equals nobody leaves for another.
  EXPECT_EQ(Displaced(Add("b4", "b", "b:1")), "b4");
  EXPECT_EQ(Displaced(Add("c1", "c", "c:1")), "b3");
  EXPECT_EQ(queue_.size(), 6U);
}

TEST_F(TurnQueueTest, WhatWasTakenOutIsThereNoMore) {
  const TurnQueue::Ticket first = Add("a1", "a", "a:1").ticket;
  Add("a2", "a", "a:1", clock_.Now() + 1);
  EXPECT_TRUE(queue_.Remove(first));
  EXPECT_FALSE(queue_.Remove(first));
  EXPECT_FALSE(queue_.Remove(0));
  EXPECT_EQ(Next(), "a2");
  clock_.Advance(1);
  EXPECT_THAT(queue_.TakeLate(0), IsEmpty());
  EXPECT_EQ(queue_.LargestAccount(), "");
}

// Everybody sends again as soon as it is answered or turned away: 40
// connections of three accounts, of which one has most of them, with more calls
// than there are places.
TEST_F(TurnQueueTest, EverybodyIsServedAlikeInACrowd) {
  TurnQueue queue(50, &clock_);
  struct Sender {
    std::string account, connection;
    int open = 0, served = 0;
  };
  std::vector<Sender> senders;
  for (int i = 0; i < 40; ++i) {
    const char* account = i < 2 ? "few" : i < 4 ? "some" : "many";
    senders.push_back({account, std::to_string(i)});
  }
  std::map<TurnQueue::Ticket, Sender*> open;
  std::mt19937 random(7);
  for (int turn = 0; turn < 30000; ++turn) {
    // A few of those who may send do.
    for (int i = 0; i < 4; ++i) {
      Sender& sender = senders[random() % senders.size()];
      if (sender.open == 5) continue;
      ++sender.open;
      const auto entered =
          queue.Add(sender.account, sender.connection, kNoDeadline);
      open[entered.ticket] = &sender;
      if (!entered.displaced.has_value()) continue;
      --open[*entered.displaced]->open;
      open.erase(*entered.displaced);
    }
    if (turn % 2 != 0) continue;
    const auto next =
        queue.TakeNext([](TurnQueue::Ticket) { return Answer::kGoes; });
    ASSERT_TRUE(next.has_value());
    --open[*next]->open;
    ++open[*next]->served;
    open.erase(*next);
  }
  std::map<std::string, int> of_account;
  for (const Sender& sender : senders) {
    of_account[sender.account] += sender.served;
  }
  // The two small ones send less than a third now and then.
  EXPECT_GT(of_account["few"], 3000);
  EXPECT_GT(of_account["some"], 3000);
  EXPECT_LT(of_account["many"], 9000);
  for (const Sender& sender : senders) {
    if (sender.account != "many") continue;
    EXPECT_GT(sender.served, of_account["many"] / 36 / 2) << sender.connection;
  }
}

}  // namespace
}  // namespace rknnd::transport
