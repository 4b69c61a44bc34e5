// Stands for systemd towards one rknnd: hears what it says, keeps the file
// descriptors that it stores, passes those and socket units' sockets when it
// starts it (again), and asks to be fed as a watchdog.

#ifndef TESTS_INTEGRATION_HARNESS_SERVICE_MANAGER_H_
#define TESTS_INTEGRATION_HARNESS_SERVICE_MANAGER_H_

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

#include "base/posix/child_process.h"
#include "base/posix/clock.h"
#include "base/posix/unique_fd.h"

namespace rknnd::integration {

// Thread: any, one at a time.
class ServiceManager {
 public:
  struct Options {
    std::vector<std::string> arguments;  // beside the socket and the device
    base::Nanoseconds watchdog = 0;      // WatchdogSec=
  };

  // `folder` is there as long as this.
  ServiceManager(const std::string& folder, Options options);
  // Ends the daemon in order, if it runs, and expects it to have been well.
  ~ServiceManager();
  ServiceManager(const ServiceManager&) = delete;
  ServiceManager& operator=(const ServiceManager&) = delete;

  // From the next start on: a socket unit's socket.
  void AddSocket(const std::string& name, base::UniqueFd fd);

  // Returns when the daemon has said that it is ready; fails the test when it
  // does not.
  void Start();
  // Without waiting for anything.
  void Launch();
  void Kill();
  // SIGTERM; the exit code.
  int Stop();
  // The exit code of its own end.
  int WaitForEnd();
  void Signal(int signal) const { process_.Signal(signal); }

  // Waits for a message with this in it, and gives the whole of it; "" and the
  // test failed when none comes. Those before it are taken as well.
  std::string AwaitSaid(const std::string& words);
  // Takes what has been said by now: how many messages were just this.
  size_t CountSaid(const std::string& message);

  // What it stored and did not take back, by name.
  std::map<std::string, base::UniqueFd>& store() { return store_; }
  [[nodiscard]] size_t stored(const std::string& beginning) const;

  [[nodiscard]] std::string socket() const { return folder_ + "/session.sock"; }
  [[nodiscard]] std::string target() const { return "unix:" + socket(); }
  [[nodiscard]] std::string log() const;
  [[nodiscard]] pid_t pid() const { return process_.pid(); }
  // Its threads of this name.
  [[nodiscard]] std::vector<pid_t> ThreadsNamed(const std::string& name) const;
  // Whether this thread of it waits for something.
  [[nodiscard]] bool Sleeps(pid_t thread) const;

 private:
  // The next message; false when there is none in time.
  bool Take(int timeout_ms, std::string* message);

  const std::string folder_;
  const Options options_;
  base::UniqueFd notify_;
  std::vector<std::pair<std::string, base::UniqueFd>> sockets_;
  std::map<std::string, base::UniqueFd> store_;
  base::ChildProcess process_;
};

// A thread of a child process that stands still, which no signal can do to one
// alone, until this goes. By ptrace: `problem` says why it does not. Only on
// the thread that made it.
class StoppedThread {
 public:
  explicit StoppedThread(pid_t thread);
  ~StoppedThread();
  StoppedThread(const StoppedThread&) = delete;
  StoppedThread& operator=(const StoppedThread&) = delete;

  [[nodiscard]] const std::string& problem() const { return problem_; }

 private:
  const pid_t thread_;
  std::string problem_;
};

}  // namespace rknnd::integration

#endif  // TESTS_INTEGRATION_HARNESS_SERVICE_MANAGER_H_
