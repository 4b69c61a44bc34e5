// Tests of what another thread may do between two steps of a worker that
// begins with a shared run: most of all, that the alarm goes off there.

#include <functional>
#include <utility>

#include "daemon/core/testing/shared_runs_fixture.h"
#include "daemon/core/testing/words.h"
#include "gtest/gtest.h"

namespace rknnd::core {
namespace {

using testing::Reader;

// Something happens behind one of its looks, before that is used.
class EventfulClock final : public base::Clock {
 public:
  explicit EventfulClock(const base::Clock* clock) : clock_(clock) {}
  [[nodiscard]] base::Nanoseconds Now() const override {
    const base::Nanoseconds now = clock_->Now();
    if (looks_ > 0 && --looks_ == 0) std::exchange(event_, nullptr)();
    return now;
  }
  void SleepUntil(base::Nanoseconds time) const override {
    clock_->SleepUntil(time);
  }
  void Behind(int look, std::function<void()> event) {
    looks_ = look;
    event_ = std::move(event);
  }

 private:
  const base::Clock* const clock_;
  mutable int looks_ = 0;
  mutable std::function<void()> event_;
};

// Looks of a worker that takes a job: whose turn it is, whether the job comes
// in time, and since when it has its cores.
enum Look { kTurn = 1, kInTime, kGranted };

class SharedRunsMomentsTest : public testing::SharedRunsFixture {
 protected:
  SharedRunsMomentsTest() : eventful_(&clock) {
    options.clock = &eventful_;
    StartService();
    device.HoldJobs(true);
  }
  ~SharedRunsMomentsTest() override {
    device.HoldJobs(false);
    while (device.Release()) {
    }
    StopService();
  }

  // A worker takes the job that is next, whose time of 10 ms is over behind
  // `look`.
  void RunReadyTooLate(Look look) {
    eventful_.Behind(look, [this] {
      clock.Advance(11 * kMs);
      service->runner().Expire();
    });
    RunReady();
  }
  static JobSubmission Hasty() {
    JobSubmission hasty = Shared();
    hasty.timeout_ms = 10;
    return hasty;
  }

  EventfulClock eventful_;
};

TEST_F(SharedRunsMomentsTest, ReaderThatIsAnsweredAsItJoinsIsAnsweredOnce) {
  const Reader a = MakeReader(1), b = MakeReader(2);
  Ask(a);
  RunReady();
  Ask(b, Hasty());
  RunReadyTooLate(kInTime);
  ASSERT_EQ(b.completions().size(), 1U);
  EXPECT_EQ(b.last().code(), absl::StatusCode::kDeadlineExceeded);
  Ask(b, Shared(testing::kFrame + 1, 1));

  ASSERT_TRUE(b.session->DestroyContext(1).ok());

  ASSERT_EQ(b.completions().size(), 2U);
  EXPECT_EQ(b.completions()[1].slot, 1U);
  EXPECT_EQ(b.last().code(), absl::StatusCode::kCancelled);
  ASSERT_TRUE(device.Release());
  EXPECT_EQ(b.completions().size(), 2U);
  EXPECT_EQ(service->Status().jobs_queued, 0U);
}

TEST_F(SharedRunsMomentsTest, ReaderThatIsAnsweredAsItJoinsMayAskAgain) {
  const Reader a = MakeReader(1), b = MakeReader(2);
  Ask(a);
  RunReady();
  Ask(b, Hasty());
  RunReadyTooLate(kInTime);
  Ask(b);
  ASSERT_TRUE(device.Release());
  RunReady();
  ASSERT_EQ(b.completions().size(), 2U);
  EXPECT_EQ(b.last(), absl::OkStatus());
  EXPECT_EQ(b.answer(), 42);
  EXPECT_EQ(runs(), 1U);
}

TEST_F(SharedRunsMomentsTest,
       NobodyWaitsForARunThatHangsAndWasAnsweredAsItBegan) {
  const Reader a = MakeReader(1), b = MakeReader(2);
  Ask(a, Hasty());
  RunReadyTooLate(kGranted);
  ASSERT_EQ(a.last().code(), absl::StatusCode::kDeadlineExceeded);
  ASSERT_EQ(device.held(), 1U);
  Ask(b);
  RunReady();
  clock.Advance(options.scheduling.hang + 1);
  service->runner().Expire();
  RunReady();
  EXPECT_EQ(device.held(), 2U);
  while (device.Release()) {
  }
  EXPECT_EQ(a.completions().size(), 1U);
  EXPECT_EQ(b.last(), absl::OkStatus());
}

TEST_F(SharedRunsMomentsTest,
       DeadlineThatPassedWhileAFailedRunWasAwaitedIsKept) {
  constexpr uint32_t kLow = 2;
  const Reader a = MakeReader(1);
  const Reader b = MakeReader(2, testing::kModel, 1000, kLow);
  Ask(a);
  RunReady();
  JobSubmission soon = Shared();
  soon.deadline = 10 * kMs;
  Ask(b, soon);
  RunReady();
  PassTime(20 * kMs);
  ASSERT_EQ(b.completions().size(), 0U);
  // Others have all cores then.
  for (uint32_t i = 1; i <= 3; ++i) {
    Ask(MakeReader(static_cast<int32_t>(10 + i)), Shared(testing::kFrame + i));
    RunReady();
  }
  device.FailJobs(absl::InternalError("a bad core"));
  ASSERT_TRUE(device.Release());
  RunReady();
  ASSERT_EQ(device.held(), 3U);
  ASSERT_EQ(b.completions().size(), 0U);
  PassTime(100 * kMs);
  ASSERT_EQ(b.completions().size(), 1U);
  EXPECT_EQ(b.last().code(), absl::StatusCode::kDeadlineExceeded);
}

}  // namespace
}  // namespace rknnd::core
