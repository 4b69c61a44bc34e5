#include "client/ctl/top/top.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "client/ctl/text/text.h"

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
  // All of them took between 10.2 and 12.3 ms.
  session.latency_count = 54;
  session.latency[53] = static_cast<uint32_t>(jobs);
  return session;
}

wire::CoreReport Core(uint64_t busy_ns, uint64_t jobs, uint64_t session = 0) {
  wire::CoreReport core{};
  core.busy_ns = busy_ns;
  core.jobs = jobs;
  core.session = session;
  if (session != 0) wire::SetText(core.model, "face.onnx");
  return core;
}

wire::ModelReport Model(const std::string& name, uint64_t jobs,
                        uint64_t npu_us) {
  wire::ModelReport model{};
  for (size_t i = 0; i < name.size(); ++i) {
    model.sha256[i] = static_cast<uint8_t>(name[i]);
  }
  wire::SetText(model.name, name);
  model.contexts = 3;
  model.jobs = jobs;
  model.npu_us = npu_us;
  model.queue_us = jobs * 2000;
  model.run_ns = 10'000'000;
  model.weight_held = 4 << 20;
  return model;
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
    wire::SetText(before.board.device, "soft");
    wire::SetText(before.board.soc, "rk3588");
    before.board.cores = 2;
    before.board.uptime_ns = 10 * kSecondNs;
    before.board.uptime_s = 10;
    before.board.jobs_done = 1000;
    before.board.core_reports = {Core(5 * kSecondNs, 900, 1), Core(0, 100)};
    before.board.sessions = {Session(1, 900, 4'000'000, 100'000)};
    before.board.models = {Model("face.onnx", 900, 4'000'000)};
    before.contexts.contexts = {Context(1, 5000)};
    now = before;
    now.board.uptime_ns += 2 * kSecondNs;
    now.board.uptime_s += 2;
    now.board.jobs_done = 1100;
    now.board.jobs_queued = 4;
    now.board.jobs_running = 1;
    now.board.memory = {4 << 20, 1 << 20, 2 << 20, 0};
    now.board.unshared_total = 28 << 20;
    now.board.core_reports = {Core(6 * kSecondNs, 1000, 1), Core(0, 100)};
    now.board.sessions = {Session(1, 1000, 5'000'000, 300'000)};
    now.board.models = {Model("face.onnx", 1000, 5'000'000)};
    now.contexts.contexts = {Context(1, 5000 + 100 * 64)};
    now.contexts.contexts[0].queued = 4;
  }
  TopSample before, now;
};

Output Show(const TwoLooks& looks, const TopView& view = {.width = 120}) {
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
  EXPECT_EQ(session["queued"], 4);
  EXPECT_NEAR(session["latency_us"]["p50"], 11'000, 1'000);
  EXPECT_EQ(json["latency_us"]["p99"], session["latency_us"]["p99"]);
  const Json& model = json["models"][0];
  EXPECT_EQ(model["name"], "face.onnx");
  EXPECT_EQ(model["runs_per_s"], 50.0);
  EXPECT_EQ(model["load"], 0.25);
  EXPECT_EQ(model["run_us"], 10'000.0);
  EXPECT_EQ(json["cores"][0]["model"], "face.onnx");
}

TEST(TopTest, ProgramOfAnotherMachineSaysWhereItIs) {
  TwoLooks looks;
  wire::SetText(looks.now.board.sessions[0].address, "192.0.2.7:40112 (ci)");
  EXPECT_THAT(Show(looks, {.width = 160}).text,
              HasSubstr("camera1 at 192.0.2.7:40112 (ci)"));
}

TEST(TopTest, PercentilesAreOfTheIntervalAlone) {
  TwoLooks looks;
  // A bad time before the first look is of no interest any more.
  looks.before.board.sessions[0].latency_count = 90;
  looks.before.board.sessions[0].latency[89] = 5000;
  wire::SessionReport& session = looks.now.board.sessions[0];
  session.latency_count = 90;
  session.latency[89] = 5000;

  const Json json = Show(looks).json;

  EXPECT_LT(json["sessions"][0]["latency_us"]["p99"], 13'000.0);
}

TEST(TopTest, CountsOfLatencyMayWrapAround) {
  TwoLooks looks;
  looks.before.board.sessions[0].latency[53] = UINT32_MAX - 49;
  looks.now.board.sessions[0].latency[53] = 50;

  EXPECT_NEAR(Show(looks).json["sessions"][0]["latency_us"]["p50"], 11'000,
              1'000);
}

TEST(TopTest, PeopleSeeTheSameWithUnits) {
  const std::string text = Show(TwoLooks()).text;

  EXPECT_THAT(text, HasSubstr("rk3588 (soft, 2 cores), up 12 s: 1 session"));
  EXPECT_THAT(text, HasSubstr(" 50 %    50/s  face  camera1 (4001)\n"));
  EXPECT_THAT(text, HasSubstr("  0 %     0/s  idle\n"));
  EXPECT_THAT(text, HasSubstr("50/s done, 1 running, 4 queued, 0 failed of "
                              "1100\n"));
  EXPECT_THAT(text, HasSubstr("p50 11.3 ms, p99 12.3 ms; means: waits 2.00 ms, "
                              "runs 10.0 ms\n"));
  EXPECT_THAT(text, HasSubstr("7.0 MiB: weights 4.0 MiB, internal 1.0 MiB, "
                              "I/O 2.0 MiB\n"));
  EXPECT_THAT(text, HasSubstr("28.0 MiB without sharing: 75 % saved"));
  EXPECT_THAT(text, HasSubstr("4001  camera1    3   50  25 %      4  2.00 ms  "
                              "10.0 ms  11.3 ms  12.3 ms      -        64 B  "
                              "3.0 MiB\n"));
  EXPECT_THAT(text,
              HasSubstr("face.onnx   50  25 %  10.0 ms  2.00 ms    3      "
                        "-  4.0 MiB       0 B\n"));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
}

TEST(TopTest, LentCoreSaysToWhom) {
  TwoLooks looks;
  wire::SetText(looks.now.board.core_reports[0].lent_to, "llm\x1b[2J chat");

  const std::string text = Show(looks).text;

  EXPECT_THAT(text, HasSubstr("lent to 'llm?[2J chat'"));
}

TEST(TopTest, WhoUsesTheNpuBesideIsAWarning) {
  TwoLooks looks;
  wire::ForeignUser user{};
  user.pid = 812;
  wire::SetText(user.comm, "llm");
  wire::SetText(user.device, "/dev/dri/renderD129");
  looks.now.board.foreign_users = {user};

  const Output output = Show(looks);

  EXPECT_THAT(output.text, HasSubstr("WARNING: 'llm' (pid 812) uses "
                                     "/dev/dri/renderD129 beside rknnd\n"));
  EXPECT_EQ(output.json["foreign_users"][0]["pid"], 812);
}

TEST(TopTest, DropsAreOfTheInterval) {
  TwoLooks looks;
  looks.before.board.sessions[0].drops = 100;
  looks.now.board.sessions[0].drops = 130;
  looks.now.board.jobs_dropped = 30;

  const Output output = Show(looks);

  EXPECT_EQ(output.json["sessions"][0]["drops_per_s"], 15.0);
  EXPECT_THAT(output.text, HasSubstr(", 15/s dropped\n"));
  EXPECT_THAT(output.text, HasSubstr("12.3 ms   15/s"));
}

TEST(TopTest, KeysChooseTheOrder) {
  TwoLooks looks;
  looks.now.board.sessions.push_back(Session(2, 1000, 10, 0));
  TopOptions options;
  const auto first = [&] {
    return TopOutput(looks.before, looks.now, 9, {}, options)
        .json["sessions"][0]["id"]
        .get<int>();
  };
  EXPECT_EQ(first(), 1);
  ASSERT_TRUE(OrderOfKey('f', &options.order));
  EXPECT_EQ(first(), 2);
  EXPECT_FALSE(OrderOfKey('x', &options.order));
  EXPECT_EQ(options.order, TopOrder::kFps);
}

TEST(TopTest, KeysAreSaidOnTheLastLineAndThePastIsACurve) {
  TopOptions options;
  options.keys = true;
  options.history = {0, 0.5, 1};
  const TwoLooks looks;

  const auto lines = Lines(TopOutput(looks.before, looks.now, 9,
                                     {.width = 80, .height = 24}, options)
                               .text);

  ASSERT_EQ(lines.size(), 24U);
  EXPECT_THAT(lines.back(), HasSubstr("q quits; sorted by [n NPU] f FPS"));
  EXPECT_THAT(lines[4], HasSubstr("NPU"));
  EXPECT_THAT(lines[4], HasSubstr(" ▄█  "));
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
  looks.now.board.core_reports[0] = Core(0, 0);
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

  const std::string text = Show(looks, {.width = 80, .height = 24}).text;

  EXPECT_EQ(Lines(text).size(), 24U);
  EXPECT_THAT(text, HasSubstr("sessions more\n"));
  EXPECT_THAT(text, HasSubstr("face.onnx"));  // models have room, too
}

TEST(TopTest, ModelsOfOneNameAreToldApartByTheirHashes) {
  TwoLooks looks;
  looks.now.board.models.push_back(Model("face.onnx", 10, 1000));
  looks.now.board.models.back().sha256[0] = 0xab;

  const std::string text = Show(looks).text;

  EXPECT_THAT(text, HasSubstr("face.onnx 66616365 "));
  EXPECT_THAT(text, HasSubstr("face.onnx ab616365 "));
  EXPECT_THAT(Show(TwoLooks()).text, Not(HasSubstr("66616365")));
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
  looks.now.contexts.contexts[0].queued = UINT32_MAX;

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
