// See service_manager.h. The daemon's descriptors have numbers that the service
// manager chooses, which is why it is not a base::ChildProcess.

#include "tests/torture/service_manager.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <stdexcept>

#include "base/posix/child_process.h"
#include "base/posix/socket.h"

namespace rknnd::torture {
namespace {

constexpr char kPidEntry[] = "LISTEN_PID=0123456789012";
constexpr int kFirstFd = 3;  // systemd's SD_LISTEN_FDS_START
// As FileDescriptorStoreMax= of the unit.
constexpr size_t kMostStored = 256;

base::UniqueFd MakeNotifySocket(const std::string& path) {
  base::UniqueFd fd(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    throw std::runtime_error("'" + path + "' is too long for a socket");
  }
  std::memcpy(address.sun_path, path.c_str(), path.size());
  if (!fd.valid() || bind(fd.get(), reinterpret_cast<sockaddr*>(&address),
                          sizeof address) != 0) {
    throw std::runtime_error("cannot make the socket '" + path + "'");
  }
  return fd;
}

base::UniqueFd Listen(const std::string& path, mode_t mode) {
  auto listener = base::ListenUnix(path, mode);
  if (!listener) throw std::runtime_error(listener.error().message);
  return *std::move(listener);
}

// "NAME=text" of a line of the notification; "" where it is not there.
std::string ValueOf(const std::string& text, const std::string& name) {
  const std::string all = "\n" + text + "\n";
  const size_t at = all.find("\n" + name + "=");
  if (at == std::string::npos) return "";
  const size_t begin = at + name.size() + 2;
  return all.substr(begin, all.find('\n', begin) - begin);
}

// Our environment without what another service manager told us, and without
// those that `ours` sets.
std::vector<std::string> InheritedBut(
    const std::vector<std::pair<std::string, std::string>>& ours) {
  std::vector<std::string> entries;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const std::string name = text.substr(0, text.find('='));
    const bool other =
        name.rfind("LISTEN_", 0) == 0 || name.rfind("WATCHDOG_", 0) == 0 ||
        std::any_of(ours.begin(), ours.end(),
                    [&](const auto& o) { return o.first == name; });
    if (!other) entries.push_back(text);
  }
  return entries;
}

std::vector<char*> Pointers(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

// After fork. `pid_text` is the room behind "LISTEN_PID=" in the environment.
[[noreturn]] void Become(char* const* arguments, char* const* environment,
                         char* pid_text, std::vector<int>& fds, int log,
                         pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);
  const auto written = std::to_chars(pid_text, pid_text + 11, getpid());
  *written.ptr = '\0';
  if (log >= 0) dup2(log, STDERR_FILENO);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  // Out of the way of the numbers first.
  const int count = static_cast<int>(fds.size());
  for (int& fd : fds) {
    fd = fcntl(fd, F_DUPFD_CLOEXEC, kFirstFd + count);
    if (fd < 0) _exit(126);
  }
  int number = kFirstFd;
  for (const int fd : fds) {
    if (dup2(fd, number++) < 0) _exit(126);
  }
  execve(arguments[0], arguments, environment);
  _exit(127);
}

}  // namespace

ServiceManager::ServiceManager(Options options)
    : options_(std::move(options)),
      socket_(options_.folder + "/session.sock"),
      log_file_(options_.folder + "/rknnd.log"),
      notify_path_(options_.folder + "/notify.sock"),
      notify_(MakeNotifySocket(notify_path_)) {
  if (!options_.socket_units) return;
  listeners_.push_back({"rknnd.socket", Listen(socket_, 0660)});
  listeners_.push_back(
      {"rknnd-admin.socket", Listen(options_.folder + "/admin.sock", 0600)});
}

ServiceManager::~ServiceManager() {
  if (pid_ <= 0) return;
  Signal(SIGKILL);
  (void)Wait(10 * base::kSecond).ok();
}

void ServiceManager::Start() {
  std::vector<std::string> arguments = {
      (options_.programs.empty() ? base::ProgramFolder() : options_.programs) +
          "/rknnd",
      "--socket", socket_};
  arguments.insert(arguments.end(), options_.arguments.begin(),
                   options_.arguments.end());
  std::vector<int> fds;
  std::string names;
  for (const std::vector<Stored>* list : {&listeners_, &store_}) {
    for (const Stored& stored : *list) {
      fds.push_back(stored.fd.get());
      names += (names.empty() ? "" : ":") + stored.name;
    }
  }
  auto ours = options_.environment;
  ours.emplace_back("NOTIFY_SOCKET", notify_path_);
  if (options_.watchdog != 0) {
    ours.emplace_back("WATCHDOG_USEC",
                      std::to_string(options_.watchdog / base::kMicrosecond));
  }
  std::vector<std::string> environment = InheritedBut(ours);
  for (const auto& [name, value] : ours) {
    environment.push_back(name + "=" + value);
  }
  // The number is the child's to write: its own.
  const size_t pid_entry = environment.size();
  environment.emplace_back(kPidEntry);
  // Without these it has no meaning.
  if (!fds.empty()) {
    environment.push_back("LISTEN_FDS=" + std::to_string(fds.size()));
    environment.push_back("LISTEN_FDNAMES=" + names);
  }
  const std::vector<char*> argv = Pointers(arguments);
  const std::vector<char*> envp = Pointers(environment);
  char* const pid_text = std::strchr(envp[pid_entry], '=') + 1;
  const base::UniqueFd log(
      open(log_file_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  const pid_t parent = getpid();
  ready_at_ = 0;
  started_at_ = clock_.Now();
  pid_ = fork();
  if (pid_ < 0) throw std::runtime_error("fork failed");
  if (pid_ == 0) {
    Become(argv.data(), envp.data(), pid_text, fds, log.get(), parent);
  }
  pid_fd_.reset(static_cast<int>(syscall(SYS_pidfd_open, pid_, 0)));
  ++lives_;
}

bool ServiceManager::Poll(base::Nanoseconds deadline) {
  const base::Nanoseconds left = deadline - clock_.Now();
  pollfd fds[2] = {{notify_.get(), POLLIN, 0}, {pid_fd_.get(), POLLIN, 0}};
  poll(fds, 2,
       static_cast<int>(std::clamp<base::Nanoseconds>(
           (left + base::kMillisecond - 1) / base::kMillisecond, 0, 1000)));
  Hear();
  return fds[1].revents == 0;
}

void ServiceManager::AwaitReady(base::Nanoseconds patience) {
  const base::Nanoseconds deadline = clock_.Now() + patience;
  while (!ready()) {
    const bool runs = Poll(deadline);
    if (ready()) return;
    if (!runs) throw std::runtime_error("rknnd ended before it was ready");
    if (clock_.Now() > deadline) {
      throw std::runtime_error("rknnd is not ready in time");
    }
  }
}

void ServiceManager::Hear() {
  std::array<std::byte, 4096> buffer;
  for (;;) {
    auto message =
        base::ReceiveMessage(notify_.get(), buffer, base::Block::kNo);
    if (!message || message->would_block || message->eof) return;
    HearOne(std::string(reinterpret_cast<const char*>(buffer.data()),
                        message->size),
            std::move(message->fds));
  }
}

void ServiceManager::HearOne(const std::string& text,
                             std::vector<base::UniqueFd> fds) {
  if (ValueOf(text, "READY") == "1" && ready_at_ == 0) {
    ready_at_ = clock_.Now();
  }
  if (ValueOf(text, "WATCHDOG") == "1") ++pings_;
  const std::string name = ValueOf(text, "FDNAME");
  if (ValueOf(text, "FDSTOREREMOVE") == "1") {
    std::erase_if(store_,
                  [&](const Stored& stored) { return stored.name == name; });
  }
  if (ValueOf(text, "FDSTORE") != "1") return;
  for (base::UniqueFd& fd : fds) {
    if (store_.size() == kMostStored) return;
    store_.push_back({name.empty() ? "stored" : name, std::move(fd)});
  }
}

void ServiceManager::Kill() {
  Signal(SIGKILL);
  if (!Wait(10 * base::kSecond).ok()) {
    throw std::runtime_error("rknnd does not die");
  }
}

void ServiceManager::Signal(int signal) const {
  if (pid_ > 0) kill(pid_, signal);
}

base::Expected<int> ServiceManager::Wait(base::Nanoseconds patience) {
  const base::Nanoseconds deadline = clock_.Now() + patience;
  while (Poll(deadline)) {
    if (clock_.Now() >= deadline) {
      return base::Error{base::Code::kDeadlineExceeded, "rknnd goes on"};
    }
  }
  int status = 0;
  waitpid(pid_, &status, 0);
  pid_ = -1;
  pid_fd_.reset();
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace rknnd::torture
