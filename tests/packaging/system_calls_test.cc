// Tests that the daemon can live with the system calls its unit leaves it: it
// serves under strace, and each call it made is looked up.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <map>
#include <set>
#include <sstream>
#include <string>

#include "base/posix/child_process.h"
#include "tests/integration/harness/files.h"
#include "tests/integration/harness/models.h"
#include "tests/integration/harness/patience.h"
#include "tests/integration/harness/rknnctl.h"
#include "tests/packaging/staging.h"

namespace rknnd::packaging {
namespace {

using integration::FindProgram;
using integration::kPatience;
using testing::Contains;
using testing::IsEmpty;
using testing::Not;

constexpr char kAlways[] = "@default";

// Groups of system calls, as systemd knows them, and one that a unit makes of
// them.
class Filter {
 public:
  // `list`: of `systemd-analyze syscall-filter`.
  explicit Filter(const std::string& list) {
    std::string group;
    for (const std::string& line : Lines(list)) {
      std::istringstream words(line);
      std::string word;
      if (!(words >> word) || word.starts_with("#")) continue;
      if (line.front() == '@') {
        group = word;
      } else if (!group.empty()) {
        groups_[group].insert(word);
      }
    }
    Allow(kAlways);
  }

  // "@system-service", "~@privileged @resources", "setpriority".
  void Apply(std::string line) {
    const bool deny = line.starts_with("~");
    if (deny) line.erase(0, 1);
    std::istringstream words(line);
    for (std::string word; words >> word;) {
      std::set<std::string> calls;
      Collect(word, calls);
      for (const std::string& call : calls) {
        if (deny) {
          allowed_.erase(call);
        } else {
          allowed_.insert(call);
        }
      }
    }
    if (deny) Allow(kAlways);
  }

  [[nodiscard]] const std::set<std::string>& allowed() const {
    return allowed_;
  }

 private:
  void Allow(const std::string& word) { Collect(word, allowed_); }
  void Collect(const std::string& word, std::set<std::string>& calls) const {
    if (!word.starts_with("@")) {
      calls.insert(word);
      return;
    }
    const auto group = groups_.find(word);
    ASSERT_NE(group, groups_.end()) << "systemd knows no " << word;
    for (const std::string& member : group->second) Collect(member, calls);
  }

  std::map<std::string, std::set<std::string>> groups_;
  std::set<std::string> allowed_;
};

class SystemCallsTest : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* program : {"systemd-analyze", "strace"}) {
      if (FindProgram(program).empty()) {
        GTEST_SKIP() << program << " is not installed";
      }
    }
    if (staging_
            .Run({"strace", "-qq", "-o", staging_.scratch() + "/none",
                  FindProgram("true")})
            .code != 0) {
      GTEST_SKIP() << "no process may be traced here";
    }
  }

  [[nodiscard]] Filter UnitsFilter() const {
    Filter filter(
        staging_.Run({"systemd-analyze", "--no-pager", "syscall-filter"})
            .output);
    const std::string key = "SystemCallFilter=";
    for (const std::string& line : Lines(Source("rknnd.service"))) {
      if (line.starts_with(key)) filter.Apply(line.substr(key.size()));
    }
    return filter;
  }

  // What the daemon called from its start to its end, while it was used.
  std::set<std::string> CallsOfADay() {
    const std::string& folder = staging_.scratch();
    const std::string socket = folder + "/session.sock";
    const std::string counts = folder + "/counts";
    const std::string config = integration::WriteFile(
        folder + "/rknnd.toml", "[limits.user]\nweight = 100\n");
    base::ChildProcess::Options options;
    options.error_file = folder + "/rknnd.log";
    options.arguments = {FindProgram("strace"),
                         "-f",
                         "-qq",
                         "-c",
                         "-U",
                         "calls,name",
                         "-o",
                         counts,
                         integration::ProgramPath("rknnd"),
                         "--config",
                         config,
                         "--socket",
                         socket,
                         "--device",
                         "soft",
                         "--state-dir",
                         folder + "/state",
                         "--cache-dir",
                         folder + "/cache",
                         "--grpc",
                         "127.0.0.1:0",
                         "--metrics",
                         "127.0.0.1:0"};
    auto daemon = base::ChildProcess::Start(options);
    EXPECT_TRUE(daemon.ok());
    if (!daemon.ok()) return {};
    EXPECT_TRUE(base::WaitForServer(socket, *daemon, kPatience))
        << integration::ReadText(options.error_file);
    const std::string target = "unix:" + socket;
    const std::string model = integration::MakeConvChain(folder).path;
    for (std::vector<std::string> verb : std::vector<std::vector<std::string>>{
             {"bench", model, "--contexts", "2", "--seconds", "0.3"},
             {"bench", model, "--core-mask", "0_1_2", "--seconds", "0.3"},
             {"perf", model},
             {"doctor"},
             {"trace", "--output", folder + "/trace.json"},
             {"status"},
             {"sessions"},
             {"reset"}}) {
      // Its verdict is of no interest: a machine may have its faults.
      verb.insert(verb.begin(), {"--target", target});
      integration::RunRknnctl(folder, verb);
    }
    // The one below strace.
    std::istringstream children(integration::ReadText(
        "/proc/" + std::to_string(daemon->pid()) + "/task/" +
        std::to_string(daemon->pid()) + "/children"));
    pid_t traced = 0;
    EXPECT_TRUE(children >> traced);
    if (traced > 0) {
      kill(traced, SIGHUP);
      kill(traced, SIGTERM);
    }
    const auto code = daemon->Wait(kPatience);
    EXPECT_TRUE(code.ok() && *code == 0)
        << integration::ReadText(options.error_file);
    std::set<std::string> calls;
    for (const std::string& line : Lines(integration::ReadText(counts))) {
      std::istringstream words(line);
      uint64_t count = 0;
      std::string name;
      if (words >> count >> name && name != "total") calls.insert(name);
    }
    return calls;
  }

  const Staging staging_;
};

TEST_F(SystemCallsTest, TheFilterLeavesOutWhatItShould) {
  const std::set<std::string> allowed = UnitsFilter().allowed();
  for (const char* call : {"mount", "ptrace", "reboot", "setuid", "bpf",
                           "init_module", "sched_setscheduler", "chroot"}) {
    EXPECT_THAT(allowed, Not(Contains(call)));
  }
  for (const char* call : {"recvmsg", "sched_setaffinity", "memfd_create"}) {
    EXPECT_THAT(allowed, Contains(call));
  }
}

TEST_F(SystemCallsTest, WhatTheDaemonCallsIsAllowed) {
  const std::set<std::string> allowed = UnitsFilter().allowed();
  const std::set<std::string> calls = CallsOfADay();
  EXPECT_THAT(calls, Contains("epoll_wait"));
  std::set<std::string> refused;
  for (const std::string& call : calls) {
    if (allowed.count(call) == 0) refused.insert(call);
  }
  EXPECT_THAT(refused, IsEmpty());
}

}  // namespace
}  // namespace rknnd::packaging
