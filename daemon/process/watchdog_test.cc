// Tests of who feeds the watchdog, and of what is said when nobody does.

#include "daemon/process/watchdog.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "daemon/transport/session/testing/recorded_lines.h"

namespace rknnd {
namespace {

using transport::testing::RecordedLines;

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class WatchdogTest : public ::testing::Test {
 protected:
  static constexpr base::Nanoseconds kPeriod = base::kMillisecond;

  WatchdogTest() {
    loop_ = *base::EventLoop::Create(&real_clock_);
    progress_.Add("the loader", [this] {
      // Each look sees a period more than the one before.
      clock_.Advance(kLimit / 2);
      return ProgressWatch::Look{stuck_, 1};
    });
  }

  // Lets the loop turn until so many more things were said.
  void Hear(size_t count) {
    wanted_ = said_.size() + count;
    loop_->Run();
  }
  Watchdog::Parts Parts() {
    return {loop_.get(),
            &progress_,
            &log_,
            kPeriod,
            [this](const std::string& state) {
              said_.push_back(state);
              if (said_.size() >= wanted_) loop_->Quit();
            },
            "serves"};
  }

  static constexpr base::Nanoseconds kLimit = base::kSecond;
  base::MonotonicClock real_clock_;
  base::FakeClock clock_;
  std::unique_ptr<base::EventLoop> loop_;
  ProgressWatch progress_{&clock_, kLimit};
  RecordedLines log_;
  bool stuck_ = false;
  std::vector<std::string> said_;
  size_t wanted_ = 0;
};

TEST_F(WatchdogTest, IsFedAtOnceAndAgainAsLongAsAllIsWell) {
  const Watchdog watchdog(Parts());
  EXPECT_EQ(said_.size(), 1U);
  Hear(3);
  EXPECT_THAT(said_, Each("WATCHDOG=1"));
  EXPECT_TRUE(log_.lines.empty());
}

TEST_F(WatchdogTest, StopsWhenSomethingStandsStillAndSaysOnceWhat) {
  const Watchdog watchdog(Parts());
  stuck_ = true;
  // Until it says why.
  while (said_.back() == "WATCHDOG=1") Hear(1);
  EXPECT_THAT(said_.back(), StartsWith("STATUS=the loader has stood still"));
  ASSERT_EQ(log_.lines.size(), 1U);
  EXPECT_THAT(log_.lines[0], HasSubstr("the watchdog is not fed"));
  EXPECT_EQ(log_.events[0].event, core::Event::kStalled);
  const size_t said = said_.size();
  loop_->RunAfter(20 * kPeriod, [this] { loop_->Quit(); });
  loop_->Run();
  EXPECT_EQ(said_.size(), said) << "neither fed nor told again";
  EXPECT_EQ(log_.lines.size(), 1U);

  stuck_ = false;
  Hear(3);
  EXPECT_THAT(std::vector<std::string>(said_.end() - 3, said_.end()),
              ElementsAre("WATCHDOG=1", "STATUS=serves", "WATCHDOG=1"));
  ASSERT_EQ(log_.lines.size(), 2U);
  EXPECT_THAT(log_.lines[1], HasSubstr("fed again"));
}

}  // namespace
}  // namespace rknnd
