// See the header. What is passed goes through a program of its own
// (programs/socket_activated.cc), as LISTEN_PID must be the daemon's pid.

#include "tests/integration/harness/service_manager.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <utility>

#include "base/posix/socket.h"
#include "tests/integration/harness/files.h"
#include "tests/integration/harness/patience.h"

namespace rknnd::integration {
namespace {

constexpr int kPatienceMs = static_cast<int>(kPatience / base::kMillisecond);

// The value of NAME in "NAME=value\nOTHER=value".
std::string ValueOf(const std::string& message, const std::string& name) {
  const std::string lines = "\n" + message + "\n";
  const size_t at = lines.find("\n" + name + "=");
  if (at == std::string::npos) return "";
  const size_t begin = at + name.size() + 2;
  return lines.substr(begin, lines.find('\n', begin) - begin);
}

}  // namespace

ServiceManager::ServiceManager(const std::string& folder, Options options)
    : folder_(folder), options_(std::move(options)) {
  notify_.reset(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = folder_ + "/notify";
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  EXPECT_EQ(bind(notify_.get(), reinterpret_cast<const sockaddr*>(&address),
                 sizeof address),
            0);
}

ServiceManager::~ServiceManager() {
  if (process_.running()) {
    EXPECT_EQ(Stop(), 0) << "rknnd did not end well";
  }
  if (testing::Test::HasFailure()) {
    std::fprintf(stderr, "---- rknnd said:\n%s----\n", log().c_str());
  }
}

void ServiceManager::AddSocket(const std::string& name, base::UniqueFd fd) {
  sockets_.emplace_back(name, std::move(fd));
}

void ServiceManager::Launch() {
  const std::string door = folder_ + "/launch";
  auto listener = base::ListenUnix(door, 0600);
  ASSERT_TRUE(listener.ok()) << listener.error().message;
  base::ChildProcess::Options options;
  options.arguments = {ProgramPath("tests/integration_socket_activated"),
                       door,
                       ProgramPath("rknnd"),
                       "--socket",
                       socket(),
                       "--device",
                       "soft",
                       "--cache-dir",
                       ""};
  options.arguments.insert(options.arguments.end(), options_.arguments.begin(),
                           options_.arguments.end());
  // And nothing of whoever runs the tests.
  options.environment = {
      {"NOTIFY_SOCKET", folder_ + "/notify"},
      {"WATCHDOG_USEC",
       options_.watchdog > 0
           ? std::to_string(options_.watchdog / base::kMicrosecond)
           : ""},
      {"WATCHDOG_PID", ""},
      {"JOURNAL_STREAM", ""}};
  options.error_file = folder_ + "/rknnd.log";
  auto process = base::ChildProcess::Start(options);
  ASSERT_TRUE(process.ok()) << process.error().message;
  process_ = *std::move(process);

  base::UniqueFd launcher;
  ASSERT_TRUE(Eventually([&] {
    auto accepted = base::Accept(listener->get());
    if (accepted.ok() && accepted->valid()) launcher = *std::move(accepted);
    return launcher.valid();
  }));
  const auto pass = [&](const std::string& name, int fd) {
    EXPECT_TRUE(base::SendMessage(launcher.get(),
                                  std::as_bytes(std::span(name)),
                                  std::span(&fd, 1), base::Block::kYes)
                    .ok());
  };
  for (const auto& [name, fd] : sockets_) pass(name, fd.get());
  for (const auto& [name, fd] : store_) pass(name, fd.get());
}

void ServiceManager::Start() {
  Launch();
  EXPECT_NE(AwaitSaid("READY=1"), "");
}

void ServiceManager::Kill() {
  process_.Signal(SIGKILL);
  EXPECT_EQ(WaitForEnd(), 128 + SIGKILL);
}

int ServiceManager::Stop() {
  process_.Signal(SIGTERM);
  return WaitForEnd();
}

int ServiceManager::WaitForEnd() {
  const auto code = process_.Wait(kPatience);
  return code.ok() ? *code : -1;
}

bool ServiceManager::Take(int timeout_ms, std::string* message) {
  pollfd ready{notify_.get(), POLLIN, 0};
  if (poll(&ready, 1, timeout_ms) <= 0) return false;
  std::array<std::byte, 8192> buffer;
  auto received = base::ReceiveMessage(notify_.get(), buffer, base::Block::kNo);
  EXPECT_TRUE(received.ok()) << received.error().message;
  if (!received.ok()) return false;
  message->assign(reinterpret_cast<const char*>(buffer.data()), received->size);
  const std::string name = ValueOf(*message, "FDNAME");
  if (ValueOf(*message, "FDSTOREREMOVE") == "1") store_.erase(name);
  if (ValueOf(*message, "FDSTORE") == "1") {
    EXPECT_EQ(received->fds.size(), 1U) << *message;
    EXPECT_LT(name.size(), 256U);
    EXPECT_EQ(name.find(':'), std::string::npos);
    for (base::UniqueFd& fd : received->fds) store_[name] = std::move(fd);
  }
  return true;
}

std::string ServiceManager::AwaitSaid(const std::string& words) {
  const base::MonotonicClock clock;
  const base::Nanoseconds end = clock.Now() + kPatience;
  std::string message, all;
  while (clock.Now() < end && Take(kPatienceMs, &message)) {
    if (message.find(words) != std::string::npos) return message;
    all += message + "\n";
  }
  ADD_FAILURE() << "rknnd never said " << words << ", but:\n" << all;
  return "";
}

size_t ServiceManager::CountSaid(const std::string& message) {
  size_t count = 0;
  std::string said;
  while (Take(0, &said)) count += said == message ? 1 : 0;
  return count;
}

size_t ServiceManager::stored(const std::string& beginning) const {
  size_t count = 0;
  for (const auto& [name, fd] : store_) {
    count += name.rfind(beginning, 0) == 0 ? 1 : 0;
  }
  return count;
}

std::string ServiceManager::log() const {
  return ReadText(folder_ + "/rknnd.log");
}

std::vector<pid_t> ServiceManager::ThreadsNamed(const std::string& name) const {
  std::vector<pid_t> threads;
  for (const auto& task : std::filesystem::directory_iterator(
           "/proc/" + std::to_string(pid()) + "/task")) {
    std::ifstream file(task.path() / "comm");
    std::string comm;
    std::getline(file, comm);
    if (comm == name) {
      threads.push_back(std::stoi(task.path().filename().string()));
    }
  }
  return threads;
}

bool ServiceManager::Sleeps(pid_t thread) const {
  std::ifstream file("/proc/" + std::to_string(pid()) + "/task/" +
                     std::to_string(thread) + "/stat");
  std::string stat;
  std::getline(file, stat);
  // "number (name) state ..."
  const size_t name_end = stat.rfind(") ");
  return name_end != std::string::npos && stat[name_end + 2] == 'S';
}

StoppedThread::StoppedThread(pid_t thread) : thread_(thread) {
  if (ptrace(PTRACE_SEIZE, thread_, nullptr, nullptr) != 0 ||
      ptrace(PTRACE_INTERRUPT, thread_, nullptr, nullptr) != 0) {
    problem_ = std::string("ptrace: ") + std::strerror(errno);
    return;
  }
  int status = 0;
  if (waitpid(thread_, &status, __WALL) != thread_) {
    problem_ = std::string("waitpid: ") + std::strerror(errno);
  }
}

StoppedThread::~StoppedThread() {
  if (problem_.empty()) ptrace(PTRACE_DETACH, thread_, nullptr, nullptr);
}

}  // namespace rknnd::integration
