// The system calls of some processes as the kernel sees them (ptrace): counted
// between two marks that one of the processes sets, or as points at which a
// process is killed.

#ifndef TESTS_INTEGRATION_HARNESS_SYSCALLS_H_
#define TESTS_INTEGRATION_HARNESS_SYSCALLS_H_

#include <sys/types.h>

#include <atomic>
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

// Kills a process as one of its threads begins a system call, before it is
// made: the next call is the point right after it.
//
// Thread: one. The process is a child of this one, and may make threads.
class DeathAtSyscall {
 public:
  // At the `count`-th call from now on (1: the next), of all its threads.
  DeathAtSyscall(pid_t process, uint64_t count);
  // Lets go of the process, if it lives.
  ~DeathAtSyscall();
  DeathAtSyscall(const DeathAtSyscall&) = delete;
  DeathAtSyscall& operator=(const DeathAtSyscall&) = delete;

  // Why it will not happen; empty when it will. Once its threads are watched.
  [[nodiscard]] const std::string& problem() const { return problem_; }
  // Until it is dead or Stop() was called: whether it is dead. Its end is still
  // to be waited for.
  bool Await();
  // Any thread: it has lived long enough.
  void Stop();
  // Calls seen so far.
  [[nodiscard]] uint64_t seen() const { return seen_; }

 private:
  void Trace(std::promise<std::string> attached);

  const pid_t process_;
  const uint64_t count_;
  std::string problem_;
  std::atomic<bool> stop_{false};
  std::atomic<bool> killed_{false};
  std::atomic<uint64_t> seen_{0};
  std::thread tracer_;
};

}  // namespace rknnd::integration

#endif  // TESTS_INTEGRATION_HARNESS_SYSCALLS_H_
