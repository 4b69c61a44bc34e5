// Starts the programs that lie beside this one, a daemon of one's own among
// them: for the demo and the benchmarks. What fails is an exception, so that
// all that was started ends with the objects that hold it; should this program
// be killed, it ends all the same. Linked into programs only, never into a
// library that another program loads.

#ifndef CLIENT_LAUNCH_LAUNCHER_H_
#define CLIENT_LAUNCH_LAUNCHER_H_

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/posix/child_process.h"
#include "base/posix/clock.h"
#include "base/posix/interrupts.h"

namespace rknnd::client {

// The user, or the system, wants this program to end.
class Interrupted : public std::runtime_error {
 public:
  explicit Interrupted(int signal)
      : std::runtime_error("ended by a signal"), signal_(signal) {}

  [[nodiscard]] int signal() const { return signal_; }

 private:
  int signal_;
};

// Thread: one. Throws std::runtime_error, and Interrupted where it was given
// interrupts.
class Launcher {
 public:
  using Environment = std::vector<std::pair<std::string, std::string>>;

  Launcher() = default;
  // Waits for what is started end with them. Borrowed.
  explicit Launcher(const base::Interrupts* interrupts)
      : interrupts_(interrupts) {}

  // The first argument is the name of a program beside this one. On `cpu`, or
  // anywhere for -1.
  [[nodiscard]] base::ChildProcess Start(std::vector<std::string> arguments,
                                         Environment environment = {},
                                         int cpu = -1) const;
  // Its next line of output. `who` is named when there is none.
  std::string NextLine(base::ChildProcess& child, const std::string& who,
                       base::Nanoseconds patience) const;
  void ThrowIfInterrupted() const;

 private:
  const base::Interrupts* interrupts_ = nullptr;
};

// A folder that goes with its object.
base::TemporaryFolder MakeTemporaryFolder();

// A daemon on the software NPU, in a folder of its own; it listens once the
// object is there. Thread: one. Throws as Launcher does.
class PrivateDaemon {
 public:
  explicit PrivateDaemon(const Launcher& launcher, int cpu = -1,
                         const std::vector<std::string>& more = {});

  // For RKNND_TARGET.
  [[nodiscard]] const std::string& target() const { return target_; }
  [[nodiscard]] pid_t pid() const { return process_.pid(); }

 private:
  base::TemporaryFolder folder_;
  std::string target_;
  base::ChildProcess process_;
};

}  // namespace rknnd::client

#endif  // CLIENT_LAUNCH_LAUNCHER_H_
