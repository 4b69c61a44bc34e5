// See child_process.h.

#include "base/posix/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "base/posix/socket.h"

namespace rknnd::base {
namespace {

constexpr Nanoseconds kGrace = 10 * kSecond;
// How long a server that is not there yet is left alone between two looks.
constexpr Nanoseconds kLookInterval = 5 * kMillisecond;

enum class Waited { kReadable, kTimedOut, kInterrupted };

// Waits for `fd` until `deadline`, or until `interrupt_fd` (-1: none) can be
// read.
Waited WaitReadable(int fd, int interrupt_fd, Nanoseconds deadline) {
  const MonotonicClock clock;
  for (;;) {
    const Nanoseconds left = deadline - clock.Now();
    pollfd fds[2] = {{fd, POLLIN, 0}, {interrupt_fd, POLLIN, 0}};
    const int timeout = static_cast<int>(std::clamp<Nanoseconds>(
        (left + kMillisecond - 1) / kMillisecond, 0, 3600 * 1000));
    const int ready = poll(fds, 2, timeout);
    if (ready > 0) {
      return fds[1].revents != 0 ? Waited::kInterrupted : Waited::kReadable;
    }
    if (ready == 0 && left <= 0) return Waited::kTimedOut;
    if (ready < 0 && errno != EINTR) return Waited::kTimedOut;
  }
}

Error Interrupted() {
  return {Code::kCancelled, "a signal asked this program to end"};
}

std::vector<std::string> Environment(const ChildProcess::Options& options) {
  std::vector<std::string> environment;
  const auto is_replaced = [&](const std::string& entry) {
    const std::string key = entry.substr(0, entry.find('='));
    return std::any_of(options.environment.begin(), options.environment.end(),
                       [&](const auto& pair) { return pair.first == key; });
  };
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (!is_replaced(*entry)) environment.emplace_back(*entry);
  }
  for (const auto& [key, value] : options.environment) {
    if (!value.empty()) environment.push_back(key + "=" + value);
  }
  return environment;
}

// After fork: only what a child of a program with threads may call.
[[noreturn]] void Become(char* const* argv, char* const* environment,
                         const ChildProcess::Options& options, pid_t parent,
                         int in, int out) {
  if (options.dies_with_parent) {
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    // It may have ended before the call.
    if (getppid() != parent) _exit(127);
  }
  if (options.cpu >= 0) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(static_cast<size_t>(options.cpu), &set);
    sched_setaffinity(0, sizeof set, &set);
  }
  if (!options.error_file.empty()) {
    const int error = open(options.error_file.c_str(),
                           O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (error >= 0) dup2(error, STDERR_FILENO);
  }
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  if (dup2(in, STDIN_FILENO) >= 0 && dup2(out, STDOUT_FILENO) >= 0) {
    execve(argv[0], argv, environment);
  }
  _exit(127);
}

}  // namespace

std::vector<char*> Pointers(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  pointers.reserve(strings.size() + 1);
  for (std::string& string : strings) pointers.push_back(string.data());
  pointers.push_back(nullptr);
  return pointers;
}

Expected<ChildProcess> ChildProcess::Start(const Options& options) {
  int in_pair[2] = {-1, -1};
  if (pipe2(in_pair, O_CLOEXEC) != 0) return ErrnoError(errno, "pipe2");
  const UniqueFd child_in(in_pair[0]);
  UniqueFd to(in_pair[1]);
  int out_pair[2] = {-1, -1};
  if (pipe2(out_pair, O_CLOEXEC) != 0) return ErrnoError(errno, "pipe2");
  UniqueFd from(out_pair[0]);
  const UniqueFd child_out(out_pair[1]);

  std::vector<std::string> arguments = options.arguments;
  std::vector<std::string> environment = Environment(options);
  const std::vector<char*> argv = Pointers(arguments);
  const std::vector<char*> envp = Pointers(environment);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) return ErrnoError(errno, "fork");
  if (pid == 0) {
    Become(argv.data(), envp.data(), options, parent, child_in.get(),
           child_out.get());
  }
  ChildProcess child;
  child.pid_ = pid;
  child.pid_fd_.reset(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  child.to_ = std::move(to);
  child.from_ = std::move(from);
  child.interrupt_fd_ = options.interrupt_fd;
  return child;
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      pid_fd_(std::move(other.pid_fd_)),
      to_(std::move(other.to_)),
      from_(std::move(other.from_)),
      interrupt_fd_(other.interrupt_fd_),
      unread_(std::exchange(other.unread_, "")),
      searched_(std::exchange(other.searched_, 0)) {}

ChildProcess& ChildProcess::operator=(ChildProcess&& other) noexcept {
  if (this != &other) {
    Reap();
    pid_ = std::exchange(other.pid_, -1);
    pid_fd_ = std::move(other.pid_fd_);
    to_ = std::move(other.to_);
    from_ = std::move(other.from_);
    interrupt_fd_ = other.interrupt_fd_;
    unread_ = std::exchange(other.unread_, "");
    searched_ = std::exchange(other.searched_, 0);
  }
  return *this;
}

ChildProcess::~ChildProcess() { Reap(); }

void ChildProcess::Reap() {
  if (pid_ <= 0) return;
  Signal(SIGTERM);
  if (Wait(kGrace, -1).ok()) return;
  Signal(SIGKILL);
  (void)Wait(kGrace, -1).ok();
}

void ChildProcess::Signal(int signal) const {
  if (pid_ > 0) kill(pid_, signal);
}

Expected<int> ChildProcess::Wait(Nanoseconds timeout) {
  return Wait(timeout, interrupt_fd_);
}

Expected<int> ChildProcess::Wait(Nanoseconds timeout, int interrupt_fd) {
  if (pid_ <= 0) {
    return Error{Code::kFailedPrecondition, "wait: no process is running"};
  }
  const MonotonicClock clock;
  switch (WaitReadable(pid_fd_.get(), interrupt_fd, clock.Now() + timeout)) {
    case Waited::kReadable:
      break;
    case Waited::kTimedOut:
      return Error{Code::kDeadlineExceeded,
                   "process " + std::to_string(pid_) + " goes on running"};
    case Waited::kInterrupted:
      return Interrupted();
  }
  int status = 0;
  waitpid(pid_, &status, 0);
  pid_ = -1;
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

// Adds to unread_ what comes next; false at the end of the output.
Expected<bool> ChildProcess::ReadSome(Nanoseconds deadline) {
  switch (WaitReadable(from_.get(), interrupt_fd_, deadline)) {
    case Waited::kReadable:
      break;
    case Waited::kTimedOut:
      return Error{Code::kDeadlineExceeded,
                   "process " + std::to_string(pid_) + " says nothing"};
    case Waited::kInterrupted:
      return Interrupted();
  }
  char buffer[4096];
  const ssize_t count = read(from_.get(), buffer, sizeof buffer);
  if (count < 0 && errno != EINTR) return ErrnoError(errno, "read");
  if (count > 0) unread_.append(buffer, static_cast<size_t>(count));
  return count != 0;
}

Expected<std::string> ChildProcess::ReadLine(Nanoseconds timeout) {
  const MonotonicClock clock;
  const Nanoseconds deadline = clock.Now() + timeout;
  for (;;) {
    if (const size_t end = unread_.find('\n', searched_);
        end != std::string::npos) {
      std::string line = unread_.substr(0, end);
      unread_.erase(0, end + 1);
      searched_ = 0;
      return line;
    }
    searched_ = unread_.size();
    auto more = ReadSome(deadline);
    if (!more) return std::move(more).error();
    if (!*more) {
      return Error{Code::kUnavailable,
                   "process " + std::to_string(pid_) + " has said its last"};
    }
  }
}

Expected<std::string> ChildProcess::ReadAll(Nanoseconds timeout) {
  const MonotonicClock clock;
  const Nanoseconds deadline = clock.Now() + timeout;
  for (;;) {
    auto more = ReadSome(deadline);
    if (!more) return std::move(more).error();
    if (!*more) {
      searched_ = 0;
      return std::exchange(unread_, "");
    }
  }
}

Expected<void> ChildProcess::WriteLine(const std::string& line) {
  // A pipe without a reader raises SIGPIPE: block it for the call, and take
  // back the one the call has raised.
  sigset_t pipe, before;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &pipe, &before);
  const std::string text = line + "\n";
  const ssize_t count = write(to_.get(), text.data(), text.size());
  const int error = errno;
  if (count < 0 && error == EPIPE) {
    const timespec now = {0, 0};
    sigtimedwait(&pipe, nullptr, &now);
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (count < 0) return ErrnoError(error, "write to a child process");
  return {};
}

std::string ProgramFolder() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error)
      .parent_path()
      .string();
}

Expected<TemporaryFolder> TemporaryFolder::Make() {
  std::error_code error;
  std::string path =
      (std::filesystem::temp_directory_path(error) / "rknnd-XXXXXX").string();
  if (mkdtemp(path.data()) == nullptr) {
    return ErrnoError(errno, "mkdtemp '" + path + "'");
  }
  return TemporaryFolder(std::move(path));
}

TemporaryFolder::~TemporaryFolder() {
  if (path_.empty()) return;
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

bool WaitForServer(const std::string& path, ChildProcess& process,
                   Nanoseconds timeout) {
  const MonotonicClock clock;
  const Nanoseconds deadline = clock.Now() + timeout;
  while (clock.Now() < deadline) {
    if (ConnectUnix(path).ok()) return true;
    // Also the pause between two looks.
    const Expected<int> ended = process.Wait(kLookInterval);
    if (ended.ok() || ended.error().code != Code::kDeadlineExceeded) {
      return false;
    }
  }
  return false;
}

}  // namespace rknnd::base
