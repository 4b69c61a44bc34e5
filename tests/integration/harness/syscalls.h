// The system calls of some processes, counted as the kernel sees them (ptrace),
// between two marks that one of the processes sets.

#ifndef TESTS_INTEGRATION_HARNESS_SYSCALLS_H_
#define TESTS_INTEGRATION_HARNESS_SYSCALLS_H_

#include <sys/types.h>

#include <cstdint>
#include <future>
#include <map>
#include <string>
#include <thread>
#include <vector>

namespace rknnd::integration {

// Thread: one. The processes are children of this one, and make no threads
// meanwhile.
class SyscallCounter {
 public:
  // By number, of each process.
  using Counts = std::map<pid_t, std::map<uint64_t, uint64_t>>;

  // Each getppid() of `marker` is a mark.
  SyscallCounter(const std::vector<pid_t>& processes, pid_t marker);
  ~SyscallCounter();
  SyscallCounter(const SyscallCounter&) = delete;
  SyscallCounter& operator=(const SyscallCounter&) = delete;

  // Why nothing is counted; empty when all is. Once the threads are watched.
  [[nodiscard]] const std::string& problem() const { return problem_; }
  // Waits for the second mark.
  Counts Wait();

 private:
  void Trace(const std::vector<pid_t>& processes, pid_t marker,
             std::promise<std::string> attached);

  std::string problem_;
  Counts counts_;
  std::thread tracer_;
};

}  // namespace rknnd::integration

#endif  // TESTS_INTEGRATION_HARNESS_SYSCALLS_H_
