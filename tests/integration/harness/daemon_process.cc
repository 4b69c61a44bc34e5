#include "tests/integration/harness/daemon_process.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <system_error>
#include <utility>

#include "tests/integration/harness/files.h"
#include "tests/integration/harness/patience.h"

namespace rknnd::integration {

DaemonProcess::DaemonProcess(const std::string& folder, DaemonOptions options)
    : options_(std::move(options)),
      socket_(folder + "/session.sock"),
      log_file_(folder + "/rknnd.log") {}

DaemonProcess::~DaemonProcess() {
  if (process_.running()) {
    AskToEnd();
    EXPECT_EQ(WaitForEnd(), 0) << "rknnd did not end well";
  }
  if (testing::Test::HasFailure()) {
    std::fprintf(stderr, "---- rknnd said:\n%s----\n", log().c_str());
  }
}

void DaemonProcess::Start() {
  base::ChildProcess::Options options;
  options.arguments = {
      ProgramPath("rknnd"), "--socket",    socket_,      "--device",
      options_.device,      "--soc",       options_.soc, "--cache-dir",
      options_.cache_dir,   "--log-level", "3"};
  options.arguments.insert(options.arguments.begin(), options_.under.begin(),
                           options_.under.end());
  options.arguments.insert(options.arguments.end(), options_.more.begin(),
                           options_.more.end());
  options.error_file = log_file_;
  // Of whoever runs the tests.
  options.environment = {{"NOTIFY_SOCKET", ""}, {"JOURNAL_STREAM", ""}};
  said_before_ = log().size();
  auto process = base::ChildProcess::Start(options);
  ASSERT_TRUE(process.ok()) << process.error().message;
  process_ = *std::move(process);
  ASSERT_TRUE(base::WaitForServer(socket_, process_, kPatience))
      << "rknnd did not start:\n"
      << log();
}

void DaemonProcess::Stand() const {
  process_.Signal(SIGSTOP);
  // The kernel tells the parent of the last thread.
  siginfo_t stopped{};
  EXPECT_EQ(waitid(P_PID, static_cast<id_t>(pid()), &stopped, WSTOPPED), 0);
}

void DaemonProcess::Kill() {
  process_.Signal(SIGKILL);
  EXPECT_EQ(WaitForEnd(), 128 + SIGKILL);
}

int DaemonProcess::WaitForEnd(base::Nanoseconds within) {
  const auto code = process_.Wait(within);
  return code.ok() ? *code : -1;
}

std::string DaemonProcess::log() const { return ReadText(log_file_); }

std::string DaemonProcess::AwaitSaid(const std::string& mark) {
  std::string said;
  Eventually([&] {
    // Before it is read: an ended daemon's last words are read too.
    const bool ended = !alive();
    const std::string log = this->log();
    const size_t begin = log.find(mark, std::min(said_before_, log.size()));
    if (begin == std::string::npos) return ended;
    const size_t end = log.find('\'', begin + mark.size());
    if (end == std::string::npos) return ended;
    said = log.substr(begin + mark.size(), end - begin - mark.size());
    return true;
  });
  EXPECT_FALSE(said.empty()) << "rknnd never said " << mark << ":\n" << log();
  return said;
}

bool DaemonProcess::alive() {
  return process_.running() && !process_.Wait(0).ok();
}

size_t DaemonProcess::Count(const std::string& folder) const {
  std::error_code error;
  const std::filesystem::directory_iterator entries(
      "/proc/" + std::to_string(process_.pid()) + "/" + folder, error);
  return static_cast<size_t>(std::distance(begin(entries), end(entries)));
}

}  // namespace rknnd::integration
