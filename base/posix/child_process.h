// A program run beside this one and spoken to by lines on its stdin and stdout:
// the daemon and the cameras of the demo, the peers of a benchmark, the clients
// of an end-to-end test. Ends with its object.

#ifndef BASE_POSIX_CHILD_PROCESS_H_
#define BASE_POSIX_CHILD_PROCESS_H_

#include <sys/types.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/posix/clock.h"
#include "base/posix/unique_fd.h"
#include "base/values/expected.h"

namespace rknnd::base {

// Thread: any, one at a time.
class ChildProcess {
 public:
  struct Options {
    // The first is the program, as a path.
    std::vector<std::string> arguments;
    // Set over the environment of this process; a value of "" takes away.
    std::vector<std::pair<std::string, std::string>> environment;
    int cpu = -1;  // the only one it may use, or any
    // Stderr goes to this file instead of ours.
    std::string error_file;
    // It gets SIGTERM when the thread that started it ends, however that ends:
    // also by a signal that runs no destructor.
    bool dies_with_parent = false;
    // Waits for it end with kCancelled as soon as this can be read (that of
    // base::Interrupts). Its destructor waits all the same. Borrowed.
    int interrupt_fd = -1;
  };

  static Expected<ChildProcess> Start(const Options& options);
  ChildProcess() = default;
  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&& other) noexcept;
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;
  // SIGTERM, and SIGKILL where that is not enough within ten seconds.
  ~ChildProcess();

  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] bool running() const { return pid_ > 0; }

  void Signal(int signal) const;
  // Waits for its end: the exit code, or 128 + the signal that ended it.
  // kDeadlineExceeded when it goes on.
  Expected<int> Wait(Nanoseconds timeout);

  // The next line of its output, without the newline. kUnavailable at the end
  // of the output, kDeadlineExceeded when none comes.
  Expected<std::string> ReadLine(Nanoseconds timeout);
  // All the rest of its output.
  Expected<std::string> ReadAll(Nanoseconds timeout);
  // kUnavailable when nobody reads. Never raises SIGPIPE.
  Expected<void> WriteLine(const std::string& line);

 private:
  Expected<bool> ReadSome(Nanoseconds deadline);
  Expected<int> Wait(Nanoseconds timeout, int interrupt_fd);
  void Reap();

  pid_t pid_ = -1;
  UniqueFd pid_fd_, to_, from_;
  int interrupt_fd_ = -1;
  std::string unread_;
  size_t searched_ = 0;  // bytes of unread_ without a newline
};

// As exec and its kin take them: borrowed, and ended with a null.
std::vector<char*> Pointers(std::vector<std::string>& strings);

// The folder the running program lies in: its siblings are beside it.
std::string ProgramFolder();

// A folder of our own, removed with everything in it.
class TemporaryFolder {
 public:
  static Expected<TemporaryFolder> Make();
  TemporaryFolder(TemporaryFolder&& other) noexcept
      : path_(std::exchange(other.path_, "")) {}
  TemporaryFolder& operator=(TemporaryFolder&& other) noexcept {
    std::swap(path_, other.path_);
    return *this;
  }
  ~TemporaryFolder();

  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  explicit TemporaryFolder(std::string path) : path_(std::move(path)) {}

  std::string path_;
};

// Waits until a SOCK_SEQPACKET server answers at `path`; false when `process`
// ends, the time does, or an interrupt comes before that.
bool WaitForServer(const std::string& path, ChildProcess& process,
                   Nanoseconds timeout);

}  // namespace rknnd::base

#endif  // BASE_POSIX_CHILD_PROCESS_H_
