// See launcher.h.

#include "client/launch/launcher.h"

#include <unistd.h>

namespace rknnd::client {
namespace {

// Of a small board that is busy.
constexpr base::Nanoseconds kDaemonPatience = 60 * base::kSecond;

}  // namespace

base::ChildProcess Launcher::Start(std::vector<std::string> arguments,
                                   Environment environment, int cpu) const {
  const std::string beside = base::ProgramFolder() + "/" + arguments.at(0);
  // Of installed programs, the daemon stands with those of administrators.
  const std::string installed =
      base::ProgramFolder() + "/" RKNND_SBIN_OF_EXAMPLES "/" + arguments.at(0);
  arguments.at(0) =
      access(beside.c_str(), X_OK) != 0 && access(installed.c_str(), X_OK) == 0
          ? installed
          : beside;
  base::ChildProcess::Options options;
  options.arguments = std::move(arguments);
  options.environment = std::move(environment);
  options.cpu = cpu;
  options.dies_with_parent = true;
  if (interrupts_ != nullptr) options.interrupt_fd = interrupts_->fd();
  auto child = base::ChildProcess::Start(options);
  if (!child) throw std::runtime_error(child.error().message);
  return *std::move(child);
}

std::string Launcher::NextLine(base::ChildProcess& child,
                               const std::string& who,
                               base::Nanoseconds patience) const {
  auto line = child.ReadLine(patience);
  if (line) return *std::move(line);
  // A terminal's Ctrl-C reaches the child too: its end is not the reason then.
  ThrowIfInterrupted();
  if (line.error().code == base::Code::kUnavailable) {
    throw std::runtime_error(who + " ended too soon");
  }
  throw std::runtime_error(who + ": " + line.error().message);
}

void Launcher::ThrowIfInterrupted() const {
  if (interrupts_ == nullptr) return;
  if (const int signal = interrupts_->Take(); signal != 0) {
    throw Interrupted(signal);
  }
}

base::TemporaryFolder MakeTemporaryFolder() {
  auto folder = base::TemporaryFolder::Make();
  if (!folder) throw std::runtime_error(folder.error().message);
  return *std::move(folder);
}

PrivateDaemon::PrivateDaemon(const Launcher& launcher, int cpu,
                             const std::vector<std::string>& more)
    : folder_(MakeTemporaryFolder()) {
  const std::string socket = folder_.path() + "/session.sock";
  target_ = "unix:" + socket;
  std::vector<std::string> arguments = {
      "rknnd",       "--socket", socket,        "--device", "soft",
      "--cache-dir", "",         "--log-level", "1"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  process_ = launcher.Start(std::move(arguments), {}, cpu);
  if (!base::WaitForServer(socket, process_, kDaemonPatience)) {
    launcher.ThrowIfInterrupted();
    throw std::runtime_error("the daemon did not start");
  }
}

}  // namespace rknnd::client
