#include "daemon/transport/grpc/delivery_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "daemon/transport/session/testing/recorded_lines.h"

namespace rknnd::transport {
namespace {

using transport::testing::RecordedLines;

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr base::Nanoseconds kLimit = 30 * base::kSecond;

class DeliveryWatchTest : public ::testing::Test {
 protected:
  DeliveryWatchTest() : loop_(*base::EventLoop::Create(&clock_)) {}

  // All that is posted or due has run; a round may post for the next.
  void RunLoop() {
    for (int round = 0; round < 3; ++round) {
      loop_->Quit();
      loop_->Run();
    }
  }
  void Pass(base::Nanoseconds time) {
    RunLoop();
    clock_.Advance(time);
    RunLoop();
  }
  DeliveryWatch::Guard Begin(int number) {
    return watch_.Begin("peer",
                        [this, number] { cancelled_.push_back(number); });
  }

  base::FakeClock clock_;
  RecordedLines log_;
  FailureLog failures_{&log_, &clock_};
  std::unique_ptr<base::EventLoop> loop_;
  DeliveryWatch watch_{kLimit, loop_.get(), &clock_, &failures_};
  std::vector<int> cancelled_;
};

TEST_F(DeliveryWatchTest, AnAnswerThatIsTakenInTimeIsLeftAlone) {
  {
    const DeliveryWatch::Guard guard = Begin(1);
    Pass(kLimit - 1);
  }
  Pass(2 * kLimit);
  EXPECT_THAT(cancelled_, ElementsAre());
  EXPECT_EQ(watch_.waiting(), 0U);
}

TEST_F(DeliveryWatchTest, OneThatIsNotTakenIsCancelledOnce) {
  const DeliveryWatch::Guard guard = Begin(1);
  Pass(kLimit);
  Pass(kLimit);
  EXPECT_THAT(cancelled_, ElementsAre(1));
  EXPECT_THAT(log_.lines, Contains(HasSubstr("does not take its answers")));
}

TEST_F(DeliveryWatchTest, WhatThePeerDoesNotDoIsSaid) {
  const DeliveryWatch::Guard guard = watch_.Begin(
      "peer", [] {}, "does not go on");
  Pass(kLimit);
  EXPECT_THAT(log_.lines,
              Contains(HasSubstr("'peer' does not go on: call cancelled")));
}

TEST_F(DeliveryWatchTest, EachHasItsOwnTime) {
  const DeliveryWatch::Guard first = Begin(1);
  Pass(kLimit / 2);
  const DeliveryWatch::Guard second = Begin(2);
  Pass(kLimit / 2);
  EXPECT_THAT(cancelled_, ElementsAre(1));
  Pass(kLimit / 2);
  EXPECT_THAT(cancelled_, ElementsAre(1, 2));
}

TEST_F(DeliveryWatchTest, ItLooksAgainAfterAQuietTime) {
  Begin(1).Release();
  Pass(2 * kLimit);
  const DeliveryWatch::Guard guard = Begin(2);
  Pass(kLimit);
  EXPECT_THAT(cancelled_, ElementsAre(2));
}

TEST_F(DeliveryWatchTest, AGuardMayEndWhileItIsCancelled) {
  auto guard = std::make_unique<DeliveryWatch::Guard>();
  *guard = watch_.Begin("peer", [&guard, this] {
    cancelled_.push_back(1);
    guard.reset();
  });
  Pass(kLimit);
  EXPECT_THAT(cancelled_, ElementsAre(1));
  EXPECT_EQ(guard, nullptr);
}

}  // namespace
}  // namespace rknnd::transport
