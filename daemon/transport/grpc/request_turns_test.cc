#include "daemon/transport/grpc/request_turns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "daemon/transport/grpc/overload_log.h"
#include "daemon/transport/session/testing/recorded_lines.h"

namespace rknnd::transport {
namespace {

using transport::testing::RecordedLines;

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr uint64_t kBytes = uint64_t{1} << 20;
constexpr uint32_t kWaiting = 3;

class RequestTurnsTest : public ::testing::Test {
 protected:
  struct Call {
    RequestTurns::Place place;
    RequestBudget::Hold hold;
    absl::Status status = absl::UnknownError("not told");
  };

  RequestTurnsTest() : loop_(*base::EventLoop::Create(&clock_)) {}

  void RunLoop() {
    for (int round = 0; round < 3; ++round) {
      loop_->Quit();
      loop_->Run();
    }
  }
  std::unique_ptr<Call> Ask(
      const std::string& account, uint64_t message = 700 << 10,
      base::Nanoseconds deadline = TurnQueue::kNoDeadline) {
    auto call = std::make_unique<Call>();
    turns_.Ask({account, account + ":1", deadline}, message, &call->place,
               [to = call.get()](absl::StatusOr<RequestBudget::Hold> hold) {
                 EXPECT_TRUE(absl::IsUnknown(to->status)) << "told twice";
                 to->status = hold.status();
                 if (hold.ok()) to->hold = *std::move(hold);
               });
    return call;
  }
  static bool Waits(const Call& call) { return absl::IsUnknown(call.status); }

  base::FakeClock clock_;
  std::unique_ptr<base::EventLoop> loop_;
  RequestBudget budget_{{kBytes, 100}};
  RequestTurns turns_{&budget_, kWaiting, loop_.get(), &clock_};
};

TEST_F(RequestTurnsTest, WhereThereIsRoomNobodyWaits) {
  const auto call = Ask("a");
  EXPECT_TRUE(call->status.ok());
  EXPECT_EQ(call->hold.bytes(), (700 << 10) + 4096U);
  EXPECT_FALSE(turns_.Withdraw(call->place));
}

TEST_F(RequestTurnsTest, WhoWaitsGoesWhenARequestHasEnded) {
  const auto first = Ask("a");
  const auto second = Ask("a");
  const auto other = Ask("b");
  RunLoop();
  EXPECT_TRUE(Waits(*second));
  EXPECT_TRUE(Waits(*other));
  EXPECT_EQ(turns_.waiting(), 2U);
  first->hold.Release();
  RunLoop();
  EXPECT_TRUE(second->status.ok());
  EXPECT_TRUE(Waits(*other));
  second->hold.Release();
  RunLoop();
  EXPECT_TRUE(other->status.ok());
}

TEST_F(RequestTurnsTest, WhatFitsGoesPastAnAccountThatHasItsPart) {
  const auto first = Ask("a");
  const auto second = Ask("a", 100 << 10);
  EXPECT_TRUE(Waits(*second));
  const auto other = Ask("b", 100 << 10);
  RunLoop();
  EXPECT_TRUE(other->status.ok());
  EXPECT_TRUE(Waits(*second));
}

// Requests that stand still keep the rest of their account out for a while, and
// nobody else.
TEST_F(RequestTurnsTest, WhatStandsStillDoesNotHoldUpOthersForLong) {
  std::vector<std::unique_ptr<Call>> still;
  for (size_t i = 0; i < RequestPace::kAtOnce; ++i) {
    still.push_back(Ask("a", 1));
    ASSERT_TRUE(still.back()->status.ok()) << i;
  }
  const auto next = Ask("a", 1);
  const auto other = Ask("b", 1);
  RunLoop();
  EXPECT_TRUE(Waits(*next));
  EXPECT_TRUE(other->status.ok());
  // Nothing has ended; the loop looks by itself.
  clock_.Advance(base::kSecond);
  RunLoop();
  EXPECT_TRUE(next->status.ok());
}

TEST_F(RequestTurnsTest, WhatCanNeverFitIsRefusedAtOnce) {
  const auto call = Ask("a", kBytes);
  EXPECT_TRUE(absl::IsResourceExhausted(call->status));
  EXPECT_THAT(std::string(call->status.message()), HasSubstr("grpc.memory"));
}

TEST_F(RequestTurnsTest, WhoWithdrawsHearsNothing) {
  const auto first = Ask("a");
  const auto second = Ask("a");
  EXPECT_TRUE(turns_.Withdraw(second->place));
  EXPECT_FALSE(turns_.Withdraw(second->place));
  first->hold.Release();
  RunLoop();
  EXPECT_TRUE(Waits(*second));
  EXPECT_EQ(budget_.usage().requests, 0U);
}

TEST_F(RequestTurnsTest, WhatIsTooLateIsNotWaitedFor) {
  auto running = Ask("a");
  // An answer takes 10 ms.
  for (int i = 0; i < 16; ++i) turns_.NoteAnswer(10 * base::kMillisecond);
  const auto late = Ask("a", 700 << 10, clock_.Now() + 9 * base::kMillisecond);
  const auto good = Ask("b", 700 << 10, clock_.Now() + 11 * base::kMillisecond);
  RunLoop();
  EXPECT_TRUE(absl::IsDeadlineExceeded(late->status)) << late->status;
  EXPECT_TRUE(Waits(*good));
  // Where nothing runs there is nothing to go by.
  running->hold.Release();
  RunLoop();
  EXPECT_TRUE(good->status.ok());
  good->hold.Release();
  EXPECT_TRUE(Ask("a", 700 << 10, clock_.Now() + 1)->status.ok());
}

TEST_F(RequestTurnsTest, WhereAllPlacesAreTakenWhoHasMostIsToldToComeAgain) {
  const auto first = Ask("a");
  std::vector<std::unique_ptr<Call>> waiting;
  for (uint32_t i = 0; i < kWaiting; ++i) waiting.push_back(Ask("a"));
  const auto more = Ask("a");
  EXPECT_TRUE(absl::IsResourceExhausted(more->status));
  EXPECT_THAT(std::string(more->status.message()), HasSubstr("'a'"));
  const auto other = Ask("b");
  EXPECT_TRUE(Waits(*other));
  EXPECT_TRUE(absl::IsResourceExhausted(waiting.back()->status));
  EXPECT_TRUE(Waits(*waiting.front()));
}

TEST_F(RequestTurnsTest, EverybodyIsToldAnotherTime) {
  // 100 answers a second.
  for (int i = 0; i < 100; ++i) {
    clock_.Advance(10 * base::kMillisecond);
    turns_.NoteAnswer(base::kMillisecond);
  }
  const base::Nanoseconds first = turns_.ComeAgain();
  EXPECT_EQ(first, 50 * base::kMillisecond);
  EXPECT_EQ(turns_.ComeAgain(), 90 * base::kMillisecond);
  EXPECT_EQ(turns_.ComeAgain(), 130 * base::kMillisecond);
  clock_.Advance(20 * base::kMillisecond);
  EXPECT_EQ(turns_.ComeAgain(), 150 * base::kMillisecond);
  // However many there are, none comes later than that, nor all at one time.
  base::Nanoseconds last = 0;
  for (int i = 0; i < 5000; ++i) {
    const base::Nanoseconds next = turns_.ComeAgain();
    EXPECT_NE(next, last);
    EXPECT_LE(next, 30 * base::kSecond);
    last = next;
  }
  EXPECT_GE(last, 15 * base::kSecond);
}

TEST(OverloadLogTest, OneLineASecondHasTheCounts) {
  base::FakeClock clock;
  RecordedLines lines;
  FailureLog failures(&lines, &clock);
  const auto loop = *base::EventLoop::Create(&clock);
  const auto run = [&] {
    for (int round = 0; round < 3; ++round) {
      loop->Quit();
      loop->Run();
    }
  };
  OverloadLog log(loop.get(), &failures);
  const absl::Status full = absl::ResourceExhaustedError("all is taken");
  for (int i = 0; i < 1000; ++i) log.Count("192.0.2.7", full);
  log.Count("ci", absl::DeadlineExceededError("too late"));
  run();
  EXPECT_THAT(lines.lines, IsEmpty());
  clock.Advance(base::kSecond);
  run();
  ASSERT_THAT(lines.lines, SizeIs(1));
  EXPECT_THAT(lines.lines[0], HasSubstr("1000 requests refused and 1 too"));
  EXPECT_THAT(lines.lines[0], HasSubstr("'ci': too late"));
  EXPECT_EQ(failures.failures()[static_cast<size_t>(full.code())], 1000U);
  clock.Advance(10 * base::kSecond);
  run();
  EXPECT_THAT(lines.lines, SizeIs(1));
  log.Count("ci", full);
  run();
  clock.Advance(base::kSecond);
  run();
  EXPECT_THAT(lines.lines, SizeIs(2));
}

}  // namespace
}  // namespace rknnd::transport
