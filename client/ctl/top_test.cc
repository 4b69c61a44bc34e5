#include "client/ctl/top.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "client/ctl/text.h"

namespace rknnd::client {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr uint64_t kSecondNs = 1'000'000'000;

wire::SessionReport Session(uint64_t id, uint64_t jobs, uint64_t npu_us,
                            uint64_t queue_us) {
  wire::SessionReport session{};
  session.id = id;
  session.pid = 4000 + static_cast<int>(id);
  wire::SetText(session.comm, "camera" + std::to_string(id));
  session.contexts = 3;
  session.jobs = jobs;
  session.npu_us = session.run_us = npu_us;
  session.queue_us = queue_us;
  session.memory = 3 << 20;
  return session;
}

wire::ContextReport Context(uint64_t session, uint64_t copied) {
  wire::ContextReport context{};
  context.session = session;
  context.copied.to_device_inputs_set = copied;
  return context;
}

// Two seconds in which core 0 was half busy, with 100 runs of session 1.
struct TwoLooks {
  TwoLooks() {
    before.board.device = "soft";
    before.board.soc = "rk3588";
    before.board.cores = 2;
    before.board.uptime_ns = 10 * kSecondNs;
    before.board.uptime_s = 10;
    before.board.jobs_done = 1000;
    before.board.core_reports = {{5 * kSecondNs, 900}, {0, 100}};
    before.board.sessions = {Session(1, 900, 4'000'000, 100'000)};
    before.contexts.contexts = {Context(1, 5000)};
    now = before;
    now.board.uptime_ns += 2 * kSecondNs;
    now.board.uptime_s += 2;
    now.board.jobs_done = 1100;
    now.board.jobs_queued = 4;
    now.board.jobs_running = 1;
    now.board.memory = {4 << 20, 1 << 20, 2 << 20, 0};
    now.board.unshared_total = 28 << 20;
    now.board.core_reports = {{6 * kSecondNs, 1000}, {0, 100}};
    now.board.sessions = {Session(1, 1000, 5'000'000, 300'000)};
    now.contexts.contexts = {Context(1, 5000 + 100 * 64)};
  }
  TopSample before, now;
};

Output Show(const TwoLooks& looks, const TopView& view = {.width = 100}) {
  return TopOutput(looks.before, looks.now, 9, view);
}

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = text.find('\n', begin);
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

TEST(TopTest, RatesAreOfTheTimeBetweenTwoLooks) {
  const Json json = Show(TwoLooks()).json;

  EXPECT_EQ(json["interval_s"], 2.0);
  EXPECT_EQ(json["cores"][0]["load"], 0.5);
  EXPECT_EQ(json["cores"][0]["jobs_per_s"], 50.0);
  EXPECT_EQ(json["cores"][1]["load"], 0.0);
  EXPECT_EQ(json["jobs"]["done_per_s"], 50.0);
  EXPECT_EQ(json["latency_us"]["queue"], 2000.0);
  EXPECT_EQ(json["latency_us"]["run"], 10000.0);
  EXPECT_EQ(json["memory"]["total"], 7 << 20);
  const Json& session = json["sessions"][0];
  EXPECT_EQ(session["runs_per_s"], 50.0);
  EXPECT_EQ(session["load"], 0.25);
  EXPECT_EQ(session["copied_per_s"], 3200.0);
}

TEST(TopTest, PeopleSeeTheSameWithUnits) {
  const std::string text = Show(TwoLooks()).text;

  EXPECT_THAT(text, HasSubstr("rk3588 (soft, 2 cores), up 12 s: 1 session"));
  EXPECT_THAT(text, HasSubstr(" 50 %      50 jobs/s\n"));
  EXPECT_THAT(text, HasSubstr("50/s done, 1 running, 4 queued, 0 failed of "
                              "1100\n"));
  EXPECT_THAT(text, HasSubstr("12.0 ms = 2.00 ms waiting for a core + 10.0 ms "
                              "on it"));
  EXPECT_THAT(text, HasSubstr("7.0 MiB: weights 4.0 MiB, internal 1.0 MiB, "
                              "I/O 2.0 MiB\n"));
  EXPECT_THAT(text, HasSubstr("28.0 MiB without sharing: 75 % saved"));
  EXPECT_THAT(text, HasSubstr("4001  camera1    3      50  25 %  2.00 ms  "
                              "10.0 ms        64 B  3.0 MiB\n"));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
}

TEST(TopTest, NewSessionStartsAtZeroAndOwnConnectionIsNone) {
  TwoLooks looks;
  looks.now.board.sessions.push_back(Session(2, 10, 1000, 0));
  looks.now.board.sessions.push_back(Session(9, 0, 0, 0));

  const Json json = Show(looks).json;

  ASSERT_EQ(json["sessions"].size(), 2U);
  EXPECT_EQ(json["sessions"][1]["id"], 2);
  EXPECT_EQ(json["sessions"][1]["runs_per_s"], 5.0);
}

TEST(TopTest, BusiestSessionComesFirst) {
  TwoLooks looks;
  looks.now.board.sessions.push_back(Session(2, 10, 3'000'000, 0));

  const Json json = Show(looks).json;

  EXPECT_EQ(json["sessions"][0]["id"], 2);
}

TEST(TopTest, OneLookAloneHasNoRatesAndNoNonsense) {
  TwoLooks looks;
  looks.before = looks.now;

  const Output output = Show(looks);

  EXPECT_EQ(output.json["jobs"]["done_per_s"], 0.0);
  EXPECT_THAT(output.text, HasSubstr("no run ended in this interval"));
  EXPECT_THAT(output.text, Not(HasSubstr("nan")));
}

TEST(TopTest, CountersThatWentBackAreNoGrowth) {
  TwoLooks looks;
  looks.now.board.jobs_done = 3;
  looks.now.board.core_reports[0] = {0, 0};
  looks.now.board.sessions = {Session(1, 3, 10, 0)};

  const Json json = Show(looks).json;

  EXPECT_EQ(json["jobs"]["done_per_s"], 0.0);
  EXPECT_EQ(json["cores"][0]["load"], 0.0);
  EXPECT_EQ(json["sessions"][0]["runs_per_s"], 0.0);
}

TEST(TopTest, DaemonWithoutTheNewerFieldsIsStillShown) {
  TwoLooks looks;
  looks.before.board.uptime_ns = looks.now.board.uptime_ns = 0;
  looks.now.board.core_reports.clear();

  const Output output = Show(looks);

  EXPECT_EQ(output.json["cores"].size(), 0U);
  EXPECT_THAT(output.text, HasSubstr("1 running, 4 queued"));
}

TEST(TopTest, SmallScreenShowsTheBusiestAndCountsTheRest) {
  TwoLooks looks;
  for (uint64_t id = 10; id < 40; ++id) {
    looks.now.board.sessions.push_back(Session(id, 10, 1000, 0));
  }

  const auto lines = Lines(Show(looks, {.width = 60, .height = 20}).text);

  EXPECT_EQ(lines.size(), 20U);
  EXPECT_THAT(lines.back(), HasSubstr("more that used it less"));
}

TEST(TopTest, NoScreenIsOverrun) {
  TwoLooks looks;
  for (uint64_t id = 10; id < 40; ++id) {
    looks.now.board.sessions.push_back(Session(id, 10, 1000, 0));
  }
  wire::SetText(looks.now.board.sessions[0].comm, "学学学学\xe9");
  for (const size_t width : {5, 30, 38, 60, 80}) {
    for (const size_t height : {3, 8, 20}) {
      const TopView view = {.width = width, .height = height};
      for (const std::string& text :
           {Show(looks, view).text,
            NoticeText("no daemon answers at '/run/somewhere'", view)}) {
        const auto lines = Lines(text);
        EXPECT_LE(lines.size(), height) << width;
        for (const std::string& line : lines) {
          EXPECT_LE(Width(line), width) << height << ": " << line;
        }
      }
    }
  }
}

TEST(TopTest, CountersOfAHostileClientAreShownAsTheMostThatIs) {
  TwoLooks looks;
  wire::ContextReport context = Context(1, UINT64_MAX);
  context.copied.from_device_outputs_get = UINT64_MAX;
  looks.before.contexts.contexts.clear();
  looks.now.contexts.contexts = {context, context};
  looks.now.board.sessions = {Session(1, 901, 4'000'000, 100'000)};

  const Output output = Show(looks);

  EXPECT_THAT(output.text, HasSubstr(" TiB"));
  EXPECT_GT(output.json["sessions"][0]["copied_per_s"], 9e18);
}

TEST(TopTest, MeansAreOfGoodRunsAndLoadIsOfAll) {
  TwoLooks looks;
  // As long again on failed ones.
  looks.now.board.sessions[0].npu_us += 1'000'000;

  const Json json = Show(looks).json;

  EXPECT_EQ(json["sessions"][0]["run_us"], 10000.0);
  EXPECT_EQ(json["sessions"][0]["load"], 0.5);
}

TEST(TopTest, NoticeCannotSteerTheTerminal) {
  EXPECT_THAT(NoticeText("gone: \x1b[2J", {}), Not(HasSubstr("\x1b")));
}

TEST(TopTest, NobodyIsSaidInWords) {
  EXPECT_THAT(TopOutput({}, {}, 0, {}).text, HasSubstr("nobody uses the NPU"));
}

TEST(TopTest, NamesOfOthersCannotSteerTheTerminal) {
  TwoLooks looks;
  wire::SetText(looks.now.board.sessions[0].comm, "evil\x1b[2J");

  EXPECT_THAT(Show(looks).text, Not(HasSubstr("\x1b[2J")));
}

TEST(TopTest, ColoursAreOnlyForThoseWhoWantThem) {
  const std::string text = Show(TwoLooks(), {.width = 80, .color = true}).text;

  EXPECT_THAT(text, HasSubstr("\x1b[32m"));
  EXPECT_THAT(text, HasSubstr("\x1b[0m"));
}

}  // namespace
}  // namespace rknnd::client
