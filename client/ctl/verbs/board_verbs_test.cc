// The verbs of a board: the program against a daemon that says what a test
// wants. With a real one: tests/integration/operating/rknnctl_board_test.cc.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "base/posix/child_process.h"
#include "base/posix/socket.h"
#include "client/ctl/board/clocks.h"
#include "client/ctl/board/logs.h"
#include "client/ctl/board/operate.h"
#include "client/ctl/rknnctl_fixture.h"
#include "nlohmann/json.hpp"

namespace rknnd::client {
namespace {

using base::Code;
using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using wire::Frame;
using wire::Verb;

class BoardVerbsTest : public RknnctlTest {};

std::vector<Frame> Only(Frame frame) {
  std::vector<Frame> frames;
  frames.push_back(std::move(frame));
  return frames;
}

// ---- doctor
// ------------------------------------------------------------------

std::vector<Frame> AnswerDoctor(const Frame& request) {
  if (request.verb != Verb::kDoctor) {
    return Only(RefusalOf(request, Code::kUnimplemented, "what?"));
  }
  wire::DoctorReply reply;
  wire::Finding finding{};
  wire::SetText(finding.check, "npu-clock");
  finding.severity = rknnd_v1_Severity_SEVERITY_WARNING;
  wire::SetText(finding.text, "the NPU runs at 200 MHz of 1000 MHz");
  wire::SetText(finding.remedy, "set its governor to performance");
  reply.findings.push_back(finding);
  wire::SetText(finding.check, "from-the-future");
  finding.severity = 77;
  wire::SetText(finding.text, "core 2 failed its self-test");
  reply.findings.push_back(finding);
  return Only(ReplyTo(request, reply));
}

TEST_F(BoardVerbsTest, DoctorPutsBothSidesFindingsTogetherWorstFirst) {
  const ScriptedDaemon daemon(socket_path(), AnswerDoctor);

  const Result result = Ask("--json doctor");

  EXPECT_EQ(result.exit_code, 1);
  const json answer = json::parse(result.out);
  EXPECT_EQ(answer["worst"], "error");
  const json& findings = answer["findings"];
  EXPECT_EQ(findings[0]["check"], "from-the-future");
  EXPECT_EQ(findings[0]["severity"], "error");
  bool has_clock = false;
  bool has_library = false;
  for (const json& finding : findings) {
    has_clock |= finding["check"] == "npu-clock" &&
                 finding["remedy"] == "set its governor to performance";
    has_library |= finding["check"] == "client-library";
  }
  EXPECT_TRUE(has_clock);
  EXPECT_TRUE(has_library);
}

TEST_F(BoardVerbsTest, DoctorWorksWithoutADaemon) {
  const Result result = Ask("doctor");

  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.out,
              HasSubstr("ERROR    no rknnd here: '" + socket_path() +
                        "' does not exist\n"
                        "         -> systemctl start rknnd"));
  EXPECT_THAT(result.out, HasSubstr("librknnrt.so"));
  EXPECT_EQ(result.err, "");
}

TEST_F(BoardVerbsTest, DoctorOfASocketThatNobodyListensOnSaysSo) {
  { const auto dead = base::ListenUnix(socket_path(), 0600); }
  const Result result = Ask("doctor");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.out, HasSubstr("nobody answers at"));
  EXPECT_THAT(result.out, HasSubstr("systemctl status rknnd"));
}

TEST_F(BoardVerbsTest, DoctorOfAnOlderDaemonIsNoError) {
  const ScriptedDaemon daemon(socket_path(), [](const Frame& request) {
    return Only(RefusalOf(request, Code::kUnimplemented, "verb 26 is unknown"));
  });
  const Result result = Ask("doctor");
  EXPECT_EQ(result.exit_code, 0) << result.out;
  EXPECT_THAT(result.out, HasSubstr("update rknnd on the board"));
}

// ---- logs
// --------------------------------------------------------------------

Frame LineEvent(uint32_t level, const std::string& text, uint64_t lost = 0) {
  wire::LogLine line{};
  line.level = level;
  line.time_ns = 1'700'000'000'123'000'000;
  line.lost = lost;
  wire::SetText(line.text, text);
  Frame event;
  event.verb = Verb::kLogLine;
  event.kind = wire::FrameKind::kEvent;
  event.body = *wire::Encode(line);
  return event;
}

std::vector<Frame> AnswerLogs(const Frame& request) {
  if (request.verb == Verb::kReport) {
    // On their way when the request came.
    std::vector<Frame> frames;
    frames.push_back(LineEvent(1, "core 1 is \x1b[2J slow", 12));
    frames.push_back(ReplyTo(request, wire::Report{}));
    frames.push_back(LineEvent(2, "too late"));
    return frames;
  }
  EXPECT_EQ(request.verb, Verb::kFollowLogs);
  const auto asked = wire::Decode<wire::FollowLogs>(request.body);
  EXPECT_TRUE(asked.ok());
  std::vector<Frame> frames;
  frames.push_back(LineEvent(2, "level " + std::to_string(asked->level) +
                                    " recent " +
                                    std::to_string(asked->recent)));
  frames.push_back(ReplyTo(request, wire::Empty{}));
  return frames;
}

TEST_F(BoardVerbsTest, LogsShowWhatTheDaemonRemembersAndEnd) {
  const ScriptedDaemon daemon(socket_path(), AnswerLogs);

  const Result result = Ask("logs --recent 7 --level 3");

  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("INFO   level 3 recent 7\n"));
  EXPECT_THAT(result.out, HasSubstr("-- 12 lines lost --\n"));
  EXPECT_THAT(result.out, HasSubstr("WARN   core 1 is ?[2J slow\n"));
}

TEST_F(BoardVerbsTest, LogsAreOneJsonDocument) {
  const ScriptedDaemon daemon(socket_path(), AnswerLogs);

  const Result result = Ask("--json logs");

  const json lines = json::parse(result.out);
  ASSERT_GE(lines.size(), 2U);
  EXPECT_EQ(lines[0]["level"], 2);
  EXPECT_EQ(lines[0]["time_ns"], 1'700'000'000'123'000'000);
  EXPECT_EQ(lines[1]["lost"], 12);
}

TEST_F(BoardVerbsTest, FollowedLogsAreOneJsonDocumentThatEndsWithCtrlC) {
  const ScriptedDaemon daemon(socket_path(), AnswerLogs);
  base::ChildProcess::Options options;
  options.arguments = {RKNND_BINARY_ROOT "/bin/rknnctl",
                       "--target",
                       "unix:" + socket_path(),
                       "--json",
                       "logs",
                       "--follow"};
  auto rknnctl = base::ChildProcess::Start(options);
  ASSERT_TRUE(rknnctl.ok());
  std::string text;
  // The third came behind all answers: it was waited for.
  for (int line = 0; line < 4; ++line) {
    auto read = rknnctl->ReadLine(30 * base::kSecond);
    ASSERT_TRUE(read.ok()) << text;
    text += *read + "\n";
    if (line == 2) rknnctl->Signal(SIGINT);
  }
  auto rest = rknnctl->ReadAll(30 * base::kSecond);
  ASSERT_TRUE(rest.ok());
  const auto code = rknnctl->Wait(30 * base::kSecond);

  ASSERT_TRUE(code.ok());
  EXPECT_EQ(*code, 0);
  const json lines = json::parse(text + *rest);
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(lines[2]["text"], "too late");
}

TEST_F(BoardVerbsTest, FollowedLogsOfADaemonThatBreaksOffAreAFailure) {
  const ScriptedDaemon daemon(socket_path(), [](const Frame& request) {
    std::vector<Frame> frames = AnswerLogs(request);
    // More than one message may hold: the script ends with it.
    if (request.verb == Verb::kReport) {
      frames.back().body.resize(wire::kMaxMemfdBody + 1);
    }
    return frames;
  });
  const Result result = Ask("--json logs --follow");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(json::parse(result.out).size(), 2U) << result.out;
  EXPECT_THAT(result.err, HasSubstr("closed the connection"));
}

TEST_F(BoardVerbsTest, LogLevelIsSetOverTheAdminSocket) {
  const ScriptedDaemon daemon(File("admin.sock"), [](const Frame& request) {
    EXPECT_EQ(request.verb, Verb::kSetLogLevel);
    const auto asked = wire::Decode<wire::SetLogLevel>(request.body);
    EXPECT_EQ(asked->level, 3U);
    return Only(ReplyTo(request, wire::SetLogLevel{.level = 2}));
  });
  const Result result = Ask("--json logs --set-level 3");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(json::parse(result.out).dump(), R"({"before":2,"level":3})");
}

TEST_F(BoardVerbsTest, BadUsageIsExitCodeTwo) {
  EXPECT_EQ(Run("logs --level 6").exit_code, 2);
  EXPECT_EQ(Run("logs --set-level 3 --follow").exit_code, 2);
  EXPECT_EQ(Run("logs --recent -1").exit_code, 2);
  EXPECT_EQ(Run("drain --wait nan").exit_code, 2);
  EXPECT_EQ(Run("drain --wait 1 --undo").exit_code, 2);
  EXPECT_EQ(Run("push").exit_code, 2);
  EXPECT_EQ(Run("perf m.onnx --runs 0").exit_code, 2);
}

// ---- reset, drain
// ------------------------------------------------------------

TEST_F(BoardVerbsTest, ResetOnATerminalHasToBeMeant) {
  int terminal = -1;
  const pid_t pid = forkpty(&terminal, nullptr, nullptr, nullptr);
  if (pid == 0) {
    execl(RKNND_BINARY_ROOT "/bin/rknnctl", "rknnctl", "--target",
          "unix:/nowhere/s", "reset", nullptr);
    _exit(127);
  }
  ASSERT_GT(pid, 0);
  const base::UniqueFd owner(terminal);
  std::string shown;
  char piece[512];
  for (ssize_t got = 0; (got = read(terminal, piece, sizeof piece)) > 0;) {
    shown.append(piece, static_cast<size_t>(got));
  }
  int status = 0;
  ASSERT_EQ(waitpid(pid, &status, 0), pid);
  EXPECT_EQ(WEXITSTATUS(status), 2) << shown;
  EXPECT_THAT(shown, HasSubstr("rknnctl reset --yes"));
  EXPECT_EQ(Run("--target unix:/nowhere/s reset").exit_code, 1);
}

TEST(OperateTest, DrainTellsWhoIsLeftWithoutItself) {
  std::vector<wire::SessionReport> left;
  for (const uint64_t id : {3, 4, 5}) {
    wire::SessionReport session{};
    session.id = id;
    wire::SetText(session.comm, "camera");
    left.push_back(session);
  }
  wire::SetText(left[0].address, "192.0.2.7:40112");

  const DrainAnswer late = DrainOutput(/*idle=*/false, left, {4, 5});

  EXPECT_FALSE(late.idle);
  EXPECT_EQ(late.output.json["idle"], false);
  ASSERT_EQ(late.output.json["sessions"].size(), 1U);
  EXPECT_THAT(late.output.text, HasSubstr("192.0.2.7:40112"));
  EXPECT_THAT(DrainOutput(true, {}, {4, 5}).output.text,
              Not(HasSubstr("SESSION")));
}

// ---- clocks
// ------------------------------------------------------------------

wire::ClocksReply TwoClocks(bool pinned) {
  wire::ClocksReply reply;
  wire::BoardClock clock{};
  wire::SetText(clock.name, "npu");
  wire::SetText(clock.governor, "rknpu_ondemand");
  clock.hz = pinned ? 1'000'000'000 : 200'000'000;
  clock.max_hz = 1'000'000'000;
  clock.pinned = pinned;
  reply.clocks.push_back(clock);
  wire::SetText(clock.name, "ddr");
  reply.clocks.push_back(clock);
  return reply;
}

TEST_F(BoardVerbsTest, ClocksArePinnedForAsLongAsTheyAreHeld) {
  std::vector<std::string> asked;
  {
    const ScriptedDaemon daemon(
        File("admin.sock"), [&asked](const Frame& request) {
          if (request.verb == Verb::kClocks) {
            asked.emplace_back("look");
            return Only(ReplyTo(request, TwoClocks(true)));
          }
          const auto pin = wire::Decode<wire::PinClocks>(request.body);
          asked.emplace_back(pin->pin ? "pin" : "release");
          return Only(ReplyTo(request, TwoClocks(pin->pin)));
        });
    auto clocks = BoardClocks::Open("unix:" + socket_path(), /*fix=*/true);
    ASSERT_TRUE(clocks.ok());
    EXPECT_TRUE(clocks->fixed());
    EXPECT_EQ(clocks->why(), "");
    EXPECT_EQ(ClocksText(clocks->clocks()),
              "npu 1.00 GHz (pinned), ddr 1.00 GHz (pinned)");
    EXPECT_EQ(ClocksJson(clocks->clocks())[0]["hz"], 1'000'000'000);
    clocks->Release();
  }
  EXPECT_THAT(asked, ElementsAre("pin", "look", "release"));
  EXPECT_EQ(ClocksText(TwoClocks(false).clocks).substr(0, 42),
            "npu 200 MHz of 1.00 GHz (rknpu_ondemand), ");
}

TEST_F(BoardVerbsTest, ABoardWithoutClocksIsNoFailure) {
  const ScriptedDaemon daemon(File("admin.sock"), [](const Frame& request) {
    if (request.verb == Verb::kPinClocks) {
      return Only(RefusalOf(request, Code::kFailedPrecondition,
                            "no clock of this board can be set"));
    }
    return Only(ReplyTo(request, wire::ClocksReply{}));
  });
  auto clocks = BoardClocks::Open("unix:" + socket_path(), /*fix=*/true);
  ASSERT_TRUE(clocks.ok());
  EXPECT_FALSE(clocks->fixed());
  EXPECT_EQ(clocks->why(), "no clock of this board can be set");
  EXPECT_THAT(clocks->clocks(), IsEmpty());
}

TEST_F(BoardVerbsTest, ClocksThatOneMayNotPinAreAFailure) {
  const ScriptedDaemon daemon(File("admin.sock"), [](const Frame& request) {
    return Only(RefusalOf(request, Code::kPermissionDenied, "operators only"));
  });
  const auto clocks = BoardClocks::Open("unix:" + socket_path(), /*fix=*/true);
  ASSERT_FALSE(clocks.ok());
  EXPECT_EQ(clocks.error().code, Code::kPermissionDenied);
}

// ---- devices
// -----------------------------------------------------------------

TEST_F(BoardVerbsTest, DevicesAreTheDaemonsHereAndOnTheNetwork) {
  const std::string folder = File("bin");
  std::filesystem::create_directories(folder);
  std::ofstream(folder + "/avahi-browse")
      << "#!/bin/sh\n"
         "[ \"$*\" = '-rpt _rknnd._tcp' ] || exit 1\n"
         "echo '=;eth0;IPv4;b;_rknnd._tcp;local;b.local;192.0.2.7;8001;"
         "\"soc=rk3576\" \"cores=2\"'\n";
  std::filesystem::permissions(folder + "/avahi-browse",
                               std::filesystem::perms::owner_all);
  const ScriptedDaemon daemon(socket_path(), std::nullopt);

  const Result result =
      Run("--json --target unix:" + socket_path() + " devices",
          "PATH=" + folder + ":$PATH");

  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.err, "");
  const json devices = json::parse(result.out);
  ASSERT_GE(devices.size(), 2U);
  EXPECT_EQ(devices.front()["target"], "unix:" + socket_path());
  EXPECT_EQ(devices.front()["source"], "daemon");
  EXPECT_EQ(devices.back().dump(),
            R"({"cores":2,"soc":"rk3576","source":"network",)"
            R"("target":"tcp://192.0.2.7:8001","version":""})");
}

TEST_F(BoardVerbsTest, WithoutAvahiDevicesAreThoseOfThisMachine) {
  const Result result =
      Run("--json --target unix:/nowhere/s devices", "PATH=" + File("nothing"));
  // The shell's env is found before PATH changes.
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(json::parse(result.out).is_array());
}

}  // namespace
}  // namespace rknnd::client
