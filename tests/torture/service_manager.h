// What systemd is to the daemon, for programs that test it: holds the listening
// sockets (as rknnd.socket and rknnd-admin.socket do), starts the daemon with
// them, hears that it is ready and alive, keeps the descriptors it stores, and
// gives these to the next one. It restarts nothing by itself.

#ifndef TESTS_TORTURE_SERVICE_MANAGER_H_
#define TESTS_TORTURE_SERVICE_MANAGER_H_

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/posix/clock.h"
#include "base/posix/unique_fd.h"
#include "base/values/expected.h"

namespace rknnd::torture {

// Thread: one. Throws std::runtime_error.
class ServiceManager {
 public:
  struct Options {
    std::string folder;                  // for the sockets and the log
    std::string programs;                // where rknnd is; "": beside this one
    std::vector<std::string> arguments;  // of rknnd, but --socket
    std::vector<std::pair<std::string, std::string>> environment;
    // Without: the daemon makes its sockets itself, as without socket units.
    bool socket_units = true;
    base::Nanoseconds watchdog = 0;  // WATCHDOG_USEC; 0: none
  };
  explicit ServiceManager(Options options);
  // Kills it, if it runs.
  ~ServiceManager();
  ServiceManager(const ServiceManager&) = delete;
  ServiceManager& operator=(const ServiceManager&) = delete;

  // Starts one, which none must be running for. Does not wait for it.
  void Start();
  // Hears what it says until it is ready; throws when it ends first, or is not
  // ready within `patience`.
  void AwaitReady(base::Nanoseconds patience = 60 * base::kSecond);
  // SIGKILL, and until it is gone.
  void Kill();
  void Signal(int signal) const;
  // Until it is gone: the exit code, or 128 + signal; kDeadlineExceeded when
  // it goes on.
  base::Expected<int> Wait(base::Nanoseconds patience);

  // Takes what it has said; never waits.
  void Hear();
  // For poll: what it says, and its end.
  [[nodiscard]] int notify_fd() const { return notify_.get(); }
  [[nodiscard]] int pid_fd() const { return pid_fd_.get(); }

  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] bool ready() const { return ready_at_ != 0; }
  // From the fork to READY=1, of this life.
  [[nodiscard]] base::Nanoseconds time_to_ready() const {
    return ready_at_ - started_at_;
  }
  [[nodiscard]] uint64_t watchdog_pings() const { return pings_; }
  [[nodiscard]] size_t stored() const { return store_.size(); }
  [[nodiscard]] int lives() const { return lives_; }

  [[nodiscard]] const std::string& socket() const { return socket_; }
  [[nodiscard]] std::string target() const { return "unix:" + socket_; }
  // What the daemon said on stderr, over all its lives.
  [[nodiscard]] const std::string& log_file() const { return log_file_; }

 private:
  struct Stored {
    std::string name;
    base::UniqueFd fd;
  };

  void HearOne(const std::string& text, std::vector<base::UniqueFd> fds);
  bool Poll(base::Nanoseconds deadline);

  const Options options_;
  const base::MonotonicClock clock_;
  const std::string socket_, log_file_, notify_path_;
  base::UniqueFd notify_, pid_fd_;
  std::vector<Stored> listeners_, store_;
  pid_t pid_ = -1;
  base::Nanoseconds started_at_ = 0, ready_at_ = 0;
  uint64_t pings_ = 0;
  int lives_ = 0;
};

}  // namespace rknnd::torture

#endif  // TESTS_TORTURE_SERVICE_MANAGER_H_
