// A real rknnd with a socket of its own, that a test may kill and start again
// at the same place.

#ifndef TESTS_INTEGRATION_HARNESS_DAEMON_PROCESS_H_
#define TESTS_INTEGRATION_HARNESS_DAEMON_PROCESS_H_

#include <csignal>
#include <cstddef>
#include <string>
#include <vector>

#include "base/posix/child_process.h"
#include "tests/integration/harness/patience.h"

namespace rknnd::integration {

struct DaemonOptions {
  std::string soc = "rk3588";
  std::string device = "soft";
  std::string cache_dir = {};  // empty: models are not kept
  std::vector<std::string> more = {};
  std::vector<std::string> under = {};  // a program that becomes the daemon
};

// Thread: any, one at a time.
class DaemonProcess {
 public:
  // Does not start it. `folder` is there as long as the daemon.
  DaemonProcess(const std::string& folder, DaemonOptions options);
  // Ends it in order, if it runs, and expects it to have been well: with
  // sanitizers its exit code is their verdict.
  ~DaemonProcess();
  DaemonProcess(const DaemonProcess&) = delete;
  DaemonProcess& operator=(const DaemonProcess&) = delete;

  // Returns when it answers; fails the test when it does not.
  void Start();
  // SIGKILL, and until it is gone.
  void Kill();
  // SIGSTOP, and until all its threads stand; then SIGCONT.
  void Stand() const;
  void GoOn() const { process_.Signal(SIGCONT); }
  // SIGTERM, without waiting; then the exit code.
  void AskToEnd() const { process_.Signal(SIGTERM); }
  int WaitForEnd(base::Nanoseconds within = kPatience);

  [[nodiscard]] const std::string& socket() const { return socket_; }
  [[nodiscard]] std::string target() const { return "unix:" + socket_; }
  // What it said on stderr, over all its lives.
  [[nodiscard]] std::string log() const;
  // Waits until it says `mark` in this life, and gives what stands behind it up
  // to the next quote. Fails the test when it does not come.
  [[nodiscard]] std::string AwaitSaid(const std::string& mark);
  // "127.0.0.1:43211", of one that was started with --grpc 127.0.0.1:0.
  [[nodiscard]] std::string grpc_address() {
    return AwaitSaid("gRPC at 'ipv4:");
  }
  [[nodiscard]] pid_t pid() const { return process_.pid(); }
  // False once it has ended by itself.
  bool alive();
  // Descriptors it has open, threads it has.
  [[nodiscard]] size_t open_fds() const { return Count("fd"); }
  [[nodiscard]] size_t threads() const { return Count("task"); }

 private:
  // Entries of a folder of its /proc.
  [[nodiscard]] size_t Count(const std::string& folder) const;

  const DaemonOptions options_;
  const std::string socket_;
  const std::string log_file_;
  size_t said_before_ = 0;  // bytes of the log, in lives before this one
  base::ChildProcess process_;
};

}  // namespace rknnd::integration

#endif  // TESTS_INTEGRATION_HARNESS_DAEMON_PROCESS_H_
