// Tests of the daemon's log, as far as clients fill it.

#include "daemon/transport/session/event_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace rknnd::transport {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Lines final : public EventLog {
 public:
  void Write(Severity severity, const std::string& text) override {
    EXPECT_EQ(severity, Severity::kWarning);
    lines.push_back(text);
  }
  std::vector<std::string> lines;
};

class Events final : public EventLog {
 public:
  void Write(Severity /*severity*/, const std::string& /*text*/) override {
    last = {};
  }
  void WriteEvent(Severity /*severity*/, const std::string& /*text*/,
                  const core::EventFields& fields) override {
    last = fields;
  }
  core::EventFields last;
};

TEST(FailureLogTest, NotesAreLinesWithoutWhatBreaksThem) {
  Lines lines;
  const base::FakeClock clock;
  FailureLog log(&lines, &clock);
  log.Note("session 1 (pid 2 'a\nb'): heap 'memfd' is used instead");
  EXPECT_THAT(lines.lines, ElementsAre("session 1 (pid 2 'a?b'): heap 'memfd' "
                                       "is used instead"));
}

TEST(FailureLogTest, CallsThatStandAloneHaveAnAddressOnly) {
  Lines lines;
  const base::FakeClock clock;
  FailureLog log(&lines, &clock);
  core::SessionPeer peer;
  peer.address = "192.0.2.7:40112 (ci)";
  log.Write(peer, 0, "ModelInfer", absl::NotFoundError("no such model"));
  peer.comm = "camera";
  log.Write(peer, 3, "Bind", absl::NotFoundError("no such buffer"));
  EXPECT_THAT(lines.lines,
              ElementsAre("ModelInfer failed: peer 192.0.2.7:40112 (ci): "
                          "NOT_FOUND: no such model",
                          "Bind failed: peer 192.0.2.7:40112 (ci) 'camera' "
                          "session 3: NOT_FOUND: no such buffer"));
}

TEST(FailureLogTest, LinesBeyondTheLimitAreLeftOutAndCounted) {
  Lines lines;
  base::FakeClock clock;
  FailureLog log(&lines, &clock);
  for (int i = 0; i < 50; ++i) {
    log.Write({}, 0, "Bind", absl::NotFoundError("no such buffer"));
  }
  const size_t burst = lines.lines.size();
  EXPECT_LT(burst, 50U);
  clock.Advance(base::kSecond);
  log.Write({}, 0, "Bind", absl::NotFoundError("no such buffer"));
  ASSERT_EQ(lines.lines.size(), burst + 1);
  EXPECT_THAT(lines.lines.back(), HasSubstr("(" + std::to_string(50 - burst) +
                                            " such lines left out before)"));
}

TEST(FailureLogTest, FailuresHideNoNote) {
  Lines lines;
  const base::FakeClock clock;
  FailureLog log(&lines, &clock);
  for (int i = 0; i < 50; ++i) {
    log.Write({}, 0, "Bind", absl::NotFoundError("no such buffer"));
  }
  log.Note("a job hangs");
  EXPECT_EQ(lines.lines.back(), "a job hangs");
  for (int i = 0; i < 50; ++i) log.Note("something");
  EXPECT_LT(lines.lines.size(), 60U);
}

TEST(FailureLogTest, LinesSayWhatTheyAreAbout) {
  Events events;
  const base::FakeClock clock;
  FailureLog log(&events, &clock);
  core::SessionPeer peer;
  peer.pid = 7;
  peer.comm = "camera";
  log.Write(peer, 3, "Bind", absl::ResourceExhaustedError("no memory"));
  EXPECT_EQ(events.last.event, core::Event::kRefused);
  EXPECT_EQ(events.last.session, 3U);
  EXPECT_EQ(events.last.pid, 7);
  EXPECT_EQ(events.last.comm, "camera");
  log.Write(peer, 3, "Bind", absl::NotFoundError("no such buffer"));
  EXPECT_EQ(events.last.event, core::Event::kOther);
  core::EventFields hang;
  hang.event = core::Event::kHang;
  hang.cores = 2;
  log.Note("a job hangs", hang);
  EXPECT_EQ(events.last.event, core::Event::kHang);
  EXPECT_EQ(events.last.cores, 2U);
}

}  // namespace
}  // namespace rknnd::transport
