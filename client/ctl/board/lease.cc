// See the header. One thread: it waits for signals and the daemon at once.

#include "client/ctl/board/lease.h"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <optional>
#include <utility>

#include "base/posix/unique_fd.h"
#include "client/ctl/control_connection.h"
#include "client/ctl/text/text.h"

namespace rknnd::client {
namespace {

using base::Code;
using base::Error;
using base::Expected;

constexpr uint32_t kMostCores = 32;
// As shells have it.
constexpr int kNotFound = 127, kNotRunnable = 126, kSignalled = 128;
// How often a daemon that died is looked for.
constexpr int kRetryMs = 500;
// Handed on to the command, where somebody sent them to rknnctl alone.
constexpr std::array<int, 6> kForwarded = {SIGINT,  SIGTERM, SIGHUP,
                                           SIGQUIT, SIGUSR1, SIGUSR2};

void Say(const std::string& text) {
  std::fprintf(stderr, "rknnctl: %s\n", Printable(text).c_str());
}

std::string Join(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) {
    text += (text.empty() ? "" : " ") + word;
  }
  return text;
}

// The signals as an fd; as they were before, when it ends.
class Signals {
 public:
  Signals() {
    sigset_t taken;
    sigemptyset(&taken);
    sigaddset(&taken, SIGCHLD);
    for (const int signal : kForwarded) sigaddset(&taken, signal);
    pthread_sigmask(SIG_BLOCK, &taken, &before_);
    fd_ = base::UniqueFd(signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK));
  }
  ~Signals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  [[nodiscard]] int fd() const { return fd_.get(); }
  [[nodiscard]] const sigset_t& before() const { return before_; }

 private:
  sigset_t before_{};
  base::UniqueFd fd_;
};

[[noreturn]] void Become(const LeaseOptions& options, const Signals& signals,
                         pid_t parent) {
  // Without rknnctl there is no lease.
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(kSignalled + SIGTERM);
  if (options.json) dup2(STDERR_FILENO, STDOUT_FILENO);
  std::vector<char*> arguments;
  for (const std::string& word : options.command) {
    arguments.push_back(const_cast<char*>(word.c_str()));
  }
  arguments.push_back(nullptr);
  pthread_sigmask(SIG_SETMASK, &signals.before(), nullptr);
  execvp(arguments[0], arguments.data());
  const int error = errno;
  Say("cannot run '" + options.command[0] + "': " + std::strerror(error));
  _exit(error == ENOENT ? kNotFound : kNotRunnable);
}

// The lease, the command, and what happens to either.
class Leased {
 public:
  Leased(const LeaseOptions& options, uint32_t cores)
      : options_(options), cores_(cores) {}

  Expected<void> Take() {
    Expected<ControlConnection> opened =
        ControlConnection::OpenAdmin(options_.target);
    if (!opened) return std::move(opened).error();
    daemon_.emplace(*std::move(opened));
    return daemon_->Lease(cores_, Join(options_.command));
  }

  // Runs the command to its end.
  int Run() {
    const Signals signals;
    const pid_t own = getpid();
    child_ = fork();
    if (child_ == 0) Become(options_, signals, own);
    if (child_ < 0) {
      Say(std::string("cannot start a process: ") + std::strerror(errno));
      return kNotRunnable;
    }
    std::optional<int> end;
    while (!(end = Ended())) {
      std::array<pollfd, 2> wait = {
          pollfd{signals.fd(), POLLIN, 0},
          pollfd{daemon_ ? daemon_->socket() : -1, POLLIN, 0}};
      const int ready = poll(wait.data(), wait.size(), daemon_ ? -1 : kRetryMs);
      if (ready < 0 && errno != EINTR) break;
      Forward(signals.fd());
      if (!daemon_) {
        TakeAgain(signals.fd());
      } else if (wait[1].revents != 0 && !daemon_->DropEvents()) {
        Say("rknnd has gone, and the lease with it, until rknnd is back");
        daemon_.reset();
      }
    }
    return end.value_or(1);
  }

 private:
  std::optional<int> Ended() {
    int status = 0;
    if (waitpid(child_, &status, WNOHANG) != child_) return std::nullopt;
    return WIFEXITED(status) ? WEXITSTATUS(status)
                             : kSignalled + WTERMSIG(status);
  }

  // Those that a terminal sends, it sends to the command as well.
  void Forward(int signals) const {
    signalfd_siginfo signal{};
    while (read(signals, &signal, sizeof signal) == sizeof signal) {
      if (signal.ssi_signo == SIGCHLD || signal.ssi_code == SI_KERNEL) continue;
      kill(child_, static_cast<int>(signal.ssi_signo));
    }
  }

  // A new daemon has lent nobody anything; somebody else may have been faster.
  void TakeAgain(int signals) {
    Expected<ControlConnection> opened =
        ControlConnection::OpenAdmin(options_.target);
    if (!opened) return;
    // The command may end meanwhile.
    opened->set_wait([signals](int fd, int milliseconds) {
      std::array<pollfd, 2> wait = {pollfd{fd, POLLIN, 0},
                                    pollfd{signals, POLLIN, 0}};
      const int ready = poll(wait.data(), wait.size(), milliseconds);
      if (wait[0].revents != 0) return ControlConnection::Waited::kReadable;
      return ready == 0 ? ControlConnection::Waited::kTimedOut
                        : ControlConnection::Waited::kCancelled;
    });
    if (!opened->Lease(cores_, Join(options_.command))) return;
    daemon_.emplace(*std::move(opened));
    Say("rknnd is back, and the lease is in force again");
  }

  const LeaseOptions& options_;
  const uint32_t cores_;
  std::optional<ControlConnection> daemon_;  // none: it died
  pid_t child_ = -1;
};

}  // namespace

std::optional<uint32_t> ParseCores(std::string_view text) {
  uint32_t cores = 0;
  const auto number = [](std::string_view digits) -> std::optional<uint32_t> {
    uint32_t core = 0;
    const auto parsed =
        std::from_chars(digits.data(), digits.data() + digits.size(), core);
    if (parsed.ec != std::errc() ||
        parsed.ptr != digits.data() + digits.size() || core >= kMostCores) {
      return std::nullopt;
    }
    return core;
  };
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view part = text.substr(begin, end - begin);
    const size_t dash = part.find('-');
    const auto first = number(part.substr(0, dash));
    const auto last =
        dash == std::string_view::npos ? first : number(part.substr(dash + 1));
    if (!first || !last || *first > *last) return std::nullopt;
    for (uint32_t core = *first; core <= *last; ++core) {
      cores |= uint32_t{1} << core;
    }
    begin = end + 1;
  }
  return cores;
}

Expected<LeaseEnd> RunLeased(const LeaseOptions& options) {
  const std::optional<uint32_t> cores = ParseCores(options.cores);
  if (!cores || options.command.empty()) {
    return Error{Code::kInvalidArgument, "lease: no cores, or no command"};
  }
  Leased leased(options, *cores);
  if (Expected<void> taken = leased.Take(); !taken) {
    return std::move(taken).error();
  }
  const auto begun = std::chrono::steady_clock::now();
  LeaseEnd end;
  end.exit_code = leased.Run();
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begun)
          .count();
  Json numbers = Json::array();
  for (uint32_t left = *cores; left != 0; left &= left - 1) {
    numbers.push_back(std::countr_zero(left));
  }
  end.output.json = {{"cores", std::move(numbers)},
                     {"exit_code", end.exit_code},
                     {"seconds", seconds}};
  return end;
}

}  // namespace rknnd::client
