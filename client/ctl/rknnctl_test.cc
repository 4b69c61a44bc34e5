// The program itself: usage, exit codes, and its answers over a socket on which
// a scripted daemon speaks.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <thread>

#include "client/ctl/rknnctl_fixture.h"
#include "nlohmann/json.hpp"
#include "proto/wire/codec.h"
#include "proto/wire/frame.h"

namespace rknnd {
namespace {

using client::Result;
using client::RknnctlTest;
using client::ScriptedDaemon;
using testing::HasSubstr;

// rknnctl top on a terminal of its own.
class TopOnATerminal {
 public:
  explicit TopOnATerminal(const std::string& socket) {
    const std::string target = "unix:" + socket;
    int terminal = -1;
    pid_ = forkpty(&terminal, nullptr, nullptr, nullptr);
    if (pid_ == 0) {
      execl(RKNND_BINARY_ROOT "/bin/rknnctl", "rknnctl", "--target",
            target.c_str(), "top", nullptr);
      _exit(127);
    }
    EXPECT_GT(pid_, 0);
    terminal_.reset(terminal);
    ended_.reset(static_cast<int>(syscall(SYS_pidfd_open, pid_, 0)));
  }
  TopOnATerminal(const TopOnATerminal&) = delete;
  TopOnATerminal& operator=(const TopOnATerminal&) = delete;
  ~TopOnATerminal() {
    Signal(SIGKILL);
    if (pid_ > 0) waitpid(pid_, nullptr, 0);
  }

  void Type(char key) { EXPECT_EQ(write(terminal_.get(), &key, 1), 1); }
  // To -1 it would go to everybody.
  void Signal(int signal) const {
    if (pid_ > 0) kill(pid_, signal);
  }
  // Reads what it shows up to `text`.
  bool Shows(const std::string& text) {
    while (shown_.find(text) == std::string::npos) {
      pollfd wait{terminal_.get(), POLLIN, 0};
      char buffer[4096];
      if (poll(&wait, 1, 20'000) <= 0) return false;
      const ssize_t got = read(terminal_.get(), buffer, sizeof buffer);
      if (got <= 0) return false;
      shown_.append(buffer, static_cast<size_t>(got));
    }
    return true;
  }
  // Sooner than it gives up a daemon by itself.
  bool EndsSoon() {
    pollfd wait{ended_.get(), POLLIN, 0};
    return poll(&wait, 1, 5'000) > 0;
  }

 private:
  pid_t pid_ = -1;
  base::UniqueFd terminal_, ended_;
  std::string shown_;
};

constexpr char kScreenTaken[] = "\x1b[?1049h";
constexpr char kScreenGivenBack[] = "\x1b[?1049l";

TEST_F(RknnctlTest, TopOfADaemonThatHangsEndsWithAKey) {
  const ScriptedDaemon daemon(socket_path(), std::nullopt);
  TopOnATerminal top(socket_path());
  ASSERT_TRUE(top.Shows(kScreenTaken));
  top.Type('x');  // means nothing, and ends nothing
  top.Type('q');
  EXPECT_TRUE(top.EndsSoon());
  EXPECT_TRUE(top.Shows(kScreenGivenBack));
}

TEST_F(RknnctlTest, TopGivesTheTerminalBackWhateverSignalEndsIt) {
  for (const int signal : {SIGTERM, SIGQUIT, SIGTSTP, SIGHUP}) {
    const std::string path = socket_path() + std::to_string(signal);
    const ScriptedDaemon daemon(path, std::nullopt);
    TopOnATerminal top(path);
    ASSERT_TRUE(top.Shows(kScreenTaken)) << signal;
    top.Signal(signal);
    EXPECT_TRUE(top.EndsSoon()) << signal;
    EXPECT_TRUE(top.Shows(kScreenGivenBack)) << signal;
  }
}

TEST_F(RknnctlTest, HelpNamesTheVerbs) {
  const Result result = Run("--help");

  EXPECT_EQ(result.exit_code, 0);
  for (const char* verb : {"status", "sessions", "models", "contexts",
                           "buffers", "mem", "infer", "bench"}) {
    EXPECT_THAT(result.out, HasSubstr(verb));
  }
}

TEST_F(RknnctlTest, BadUsageIsExitCodeTwo) {
  EXPECT_EQ(Run("").exit_code, 2);
  EXPECT_EQ(Run("statsu").exit_code, 2);
  EXPECT_EQ(Run("--nonsense status").exit_code, 2);
  EXPECT_EQ(Run("infer").exit_code, 2);
  EXPECT_EQ(Run("infer m.onnx --repeat 0").exit_code, 2);
  EXPECT_EQ(Run("bench m.onnx --threads 4 --contexts 2").exit_code, 2);
  EXPECT_EQ(Run("bench m.onnx --core-mask 9").exit_code, 2);
  EXPECT_EQ(Run("mem m.onnx --sram").exit_code, 2);
  EXPECT_EQ(Run("bench m.onnx --seconds nan").exit_code, 2);
  EXPECT_EQ(Run("bench m.onnx --seconds inf").exit_code, 2);
  EXPECT_EQ(Run("top --interval nan").exit_code, 2);
}

TEST_F(RknnctlTest, LaterVerbsSaySo) {
  for (const char* verb : {"convert m.onnx"}) {
    const Result result = Run(verb);

    EXPECT_EQ(result.exit_code, 1) << verb;
    EXPECT_THAT(result.err, HasSubstr("not supported in this version"));
  }
}

TEST_F(RknnctlTest, WithoutADaemonTheMessageSaysWhatToDo) {
  const Result result = Run("--target unix:" + socket_path() + " status");

  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(result.err, HasSubstr(socket_path()));
  EXPECT_THAT(result.err, HasSubstr("start rknnd"));
}

TEST_F(RknnctlTest, FailureIsOneJsonDocumentToo) {
  const Result result =
      Run("--json --target unix:" + socket_path() + " status");

  EXPECT_EQ(result.exit_code, 1);
  EXPECT_TRUE(nlohmann::json::parse(result.out).contains("error"));
}

TEST_F(RknnctlTest, TargetsWithoutADaemonAreNamed) {
  EXPECT_THAT(Run("--target local: status").err, HasSubstr("'local:'"));
  EXPECT_THAT(Run("--target tcp://127.0.0.1:1 status").err,
              AnyOf(HasSubstr("no rknnd at 127.0.0.1:1: refused"),
                    HasSubstr("librknnd-remote.so")));
  EXPECT_THAT(Run("--target /run/x status").err, HasSubstr("unix:PATH"));
}

TEST_F(RknnctlTest, StatusOfADaemonIsOneJsonDocument) {
  wire::Report report;
  wire::SetText(report.device, "soft");
  report.cores = 3;
  const ScriptedDaemon daemon(socket_path(), report);

  const Result result =
      Run("--target unix:" + socket_path() + " status --json");

  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto json = nlohmann::json::parse(result.out);
  EXPECT_EQ(json["device"]["kind"], "soft");
  EXPECT_EQ(json["device"]["cores"], 3);
  EXPECT_EQ(json["sessions"], 0);
}

TEST_F(RknnctlTest, OwnSessionIsLeftOutAndStrangeNamesAreStillJson) {
  wire::Report report;
  for (const uint64_t id : {4, 5}) {
    wire::SessionReport session{};
    session.id = id;
    std::strcpy(session.comm, "caf\xe9");  // Latin-1
    report.sessions.push_back(session);
  }
  const ScriptedDaemon daemon(socket_path(), report);

  const Result result =
      Run("--target unix:" + socket_path() + " --json sessions");

  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto json = nlohmann::json::parse(result.out);
  ASSERT_EQ(json.size(), 1U);
  EXPECT_EQ(json[0]["id"], 4);
}

TEST_F(RknnctlTest, WordsOfADaemonSteerNoTerminal) {
  const ScriptedDaemon daemon(socket_path(), [](const wire::Frame& request) {
    std::vector<wire::Frame> replies;
    replies.push_back(client::RefusalOf(request, base::Code::kInternal,
                                        "node '\x1b]0;mine\a' failed"));
    return replies;
  });

  const Result result = Run("--target unix:" + socket_path() + " sessions");

  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("node '?]0;mine?' failed"));
}

TEST_F(RknnctlTest, TablesAreForPeople) {
  wire::Report report;
  wire::BufferReport buffer{};
  buffer.id = 7;
  buffer.size = 3 << 20;
  std::strcpy(buffer.heap, "memfd");
  report.buffers.push_back(buffer);
  const ScriptedDaemon daemon(socket_path(), report);

  const Result result = Run("--target unix:" + socket_path() + " buffers");

  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("3.0 MiB  memfd  allocated"));
}

}  // namespace
}  // namespace rknnd
