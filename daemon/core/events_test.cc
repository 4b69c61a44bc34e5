// Tests of what lines of the daemon's log say they are about, and of what the
// watchdog is told of the runner.

#include "daemon/core/terms/events.h"

#include <string>
#include <vector>

#include "base/values/sha256.h"
#include "daemon/core/running/runner.h"
#include "daemon/core/testing/core_fixture.h"
#include "gtest/gtest.h"

namespace rknnd::core {
namespace {

using testing::TestSession;

constexpr char kEventModel[] = "bytes=16 internal=4096";

class EventSink final : public LogSink {
 public:
  void Log(uint32_t level, const std::string& text) override {
    LogEvent(level, text, {});
  }
  void LogEvent(uint32_t /*level*/, const std::string& text,
                const EventFields& fields) override {
    lines.push_back(text);
    events.push_back(fields);
  }
  std::vector<std::string> lines;
  std::vector<EventFields> events;
};

class EventsTest : public testing::CoreTest {
 protected:
  EventsTest() {
    options.log = &log_;
    StartService();
    device.HoldJobs(true);
  }
  TestSession OpenOn(uint32_t core) {
    TestSession session = Open(100);
    MakeReady(session, 1, kEventModel, 0, 1U << core);
    return session;
  }

  EventSink log_;
};

TEST_F(EventsTest, HangIsAboutItsSessionModelJobAndCore) {
  const TestSession session = OpenOn(2);
  ASSERT_TRUE(Submit(session, 1, 0).ok());
  RunReady();
  PassTime(options.scheduling.hang);
  ASSERT_FALSE(log_.events.empty());
  const EventFields hang = log_.events.front();
  EXPECT_EQ(hang.event, Event::kHang);
  EXPECT_EQ(hang.session, session->id());
  EXPECT_EQ(hang.pid, 100);
  EXPECT_EQ(hang.model, base::ToHex(Id(kEventModel)));
  EXPECT_EQ(hang.job.substr(0, 2), "1/");
  EXPECT_EQ(hang.cores, 0b100U);

  device.HoldJobs(false);
  while (device.Release()) {
  };
  RunLoops();
  EXPECT_EQ(log_.events.back().event, Event::kHangOver);
  EXPECT_EQ(log_.events.back().cores, 0b100U);
}

TEST_F(EventsTest, ClientThatGoesUnderItsJobIsTold) {
  const TestSession session = OpenOn(0);
  ASSERT_TRUE(Submit(session, 1, 0).ok());
  RunReady();
  ASSERT_TRUE(Submit(session, 1, 1, 2).ok());
  service->CloseSession(session->id());
  ASSERT_EQ(log_.events.size(), 1U);
  EXPECT_EQ(log_.events[0].event, Event::kDiedUnderJob);
  EXPECT_EQ(log_.events[0].pid, 100);
  EXPECT_NE(log_.lines[0].find("2 job(s)"), std::string::npos) << log_.lines[0];
  device.HoldJobs(false);
  while (device.Release()) {
  };
}

TEST_F(EventsTest, ClientThatGoesInOrderIsNoEvent) {
  device.HoldJobs(false);
  const TestSession session = OpenOn(0);
  ASSERT_TRUE(Submit(session, 1, 0).ok());
  RunReady();
  ASSERT_EQ(session.sink->count(), 1U);
  service->CloseSession(session->id());
  EXPECT_TRUE(log_.events.empty());
}

// ---- progress ---------------------------------------------------------------

TEST_F(EventsTest, JobWithItsTurnAndACoreIsSeenUntilAWorkerTakesIt) {
  const TestSession session = OpenOn(0);
  Runner& runner = service->runner();
  EXPECT_FALSE(runner.progress().can_begin);
  ASSERT_TRUE(Submit(session, 1, 0).ok());
  const uint64_t turns = runner.progress().turns;
  EXPECT_TRUE(runner.progress().can_begin);
  EXPECT_TRUE(runner.progress().can_begin) << "looking changes nothing";
  EXPECT_EQ(runner.progress().turns, turns);
  RunReady();
  EXPECT_FALSE(runner.progress().can_begin);
  EXPECT_EQ(runner.progress().turns, turns + 1);
  // The next one of the context waits for this one: nobody is late.
  ASSERT_TRUE(Submit(session, 1, 1, 2).ok());
  EXPECT_FALSE(runner.progress().can_begin);
  device.HoldJobs(false);
  while (device.Release()) {
  };
}

TEST_F(EventsTest, ExpiryThatIsDueIsSeenUntilAWorkerLooks) {
  const TestSession session = OpenOn(0);
  Runner& runner = service->runner();
  EXPECT_FALSE(runner.progress().expires);
  ASSERT_TRUE(Submit(session, 1, 0).ok());
  RunReady();
  EXPECT_TRUE(runner.progress().expires) << "the hang watch looks";
  // Nobody comes, though the alarm went off.
  clock.Advance(options.scheduling.hang + base::kSecond);
  EXPECT_LT(runner.progress().next_expiry, clock.Now());
  runner.Expire();
  EXPECT_FALSE(runner.progress().expires &&
               runner.progress().next_expiry < clock.Now());
  device.HoldJobs(false);
  while (device.Release()) {
  };
}

}  // namespace
}  // namespace rknnd::core
