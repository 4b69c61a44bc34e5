// See syscalls.h. One thread does all of it: a tracer is a thread.

#include "tests/integration/harness/syscalls.h"

#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <optional>
#include <utility>

namespace rknnd::integration {
namespace {

void* Number(uintptr_t value) { return reinterpret_cast<void*>(value); }

// Watches all threads of a process, which stop soon after; those that there are
// go to `threads`. Why not, or nothing.
std::string Seize(pid_t process, uintptr_t options,
                  std::vector<pid_t>* threads) {
  for (const auto& entry : std::filesystem::directory_iterator(
           "/proc/" + std::to_string(process) + "/task")) {
    const pid_t thread = std::stoi(entry.path().filename().string());
    if (ptrace(PTRACE_SEIZE, thread, nullptr, Number(options)) != 0) {
      const int error = errno;
      // A daemon that has just started ends some of its threads.
      if (error == ESRCH || !std::filesystem::exists(entry.path())) continue;
      return std::string("ptrace: ") + std::strerror(error);
    }
    // One that is about to end is heard of by its end.
    ptrace(PTRACE_INTERRUPT, thread, nullptr, nullptr);
    threads->push_back(thread);
  }
  return threads->empty() ? "ptrace: the process is gone" : "";
}

// The call that a stopped thread begins, if that is why it has stopped.
std::optional<uint64_t> BegunCall(pid_t thread, int status) {
  if (WSTOPSIG(status) != (SIGTRAP | 0x80)) return std::nullopt;
  __ptrace_syscall_info info{};
  ptrace(PTRACE_GET_SYSCALL_INFO, thread, Number(sizeof info), &info);
  if (info.op != PTRACE_SYSCALL_INFO_ENTRY) return std::nullopt;
  return info.entry.nr;
}

// The signal that a stopped thread is about to get; 0: it stopped for another
// reason.
uintptr_t SignalOf(int status) {
  if (WSTOPSIG(status) == (SIGTRAP | 0x80) || status >> 16 != 0) return 0;
  return static_cast<uintptr_t>(WSTOPSIG(status));
}

}  // namespace

SyscallCounter::SyscallCounter(const std::vector<pid_t>& processes,
                               pid_t marker) {
  std::promise<std::string> attached;
  std::future<std::string> problem = attached.get_future();
  tracer_ = std::thread(
      [this, processes, marker, attached = std::move(attached)]() mutable {
        Trace(processes, marker, std::move(attached));
      });
  problem_ = problem.get();
}

SyscallCounter::~SyscallCounter() {
  if (tracer_.joinable()) tracer_.join();
}

SyscallCounter::Counts SyscallCounter::Wait() {
  tracer_.join();
  return counts_;
}

void SyscallCounter::Trace(const std::vector<pid_t>& processes, pid_t marker,
                           std::promise<std::string> attached) {
  std::map<pid_t, pid_t> process_of;  // by thread
  std::string problem;
  for (const pid_t process : processes) {
    std::vector<pid_t> threads;
    const std::string failed = Seize(process, PTRACE_O_TRACESYSGOOD, &threads);
    if (!failed.empty()) problem = failed;
    for (const pid_t thread : threads) process_of[thread] = process;
  }
  int marks = problem.empty() ? 0 : 2;  // 2: all is let go of
  size_t not_begun = process_of.size();
  std::map<pid_t, bool> begun;
  if (!problem.empty()) attached.set_value(problem);
  const auto note_begun = [&](pid_t thread) {
    if (begun[thread]) return;
    begun[thread] = true;
    if (--not_begun == 0 && problem.empty()) attached.set_value("");
  };
  while (!process_of.empty()) {
    int status = 0;
    const pid_t thread = waitpid(-1, &status, __WALL | __WNOTHREAD);
    if (thread < 0) return;
    if (!WIFSTOPPED(status)) {
      process_of.erase(thread);
      note_begun(thread);
      continue;
    }
    const uintptr_t deliver = SignalOf(status);
    if (const auto call = BegunCall(thread, status); call && marks < 2) {
      const pid_t process = process_of[thread];
      if (process == marker && *call == SYS_getppid) {
        if (++marks == 2) {
          for (const auto& [other, unused] : process_of) {
            ptrace(PTRACE_INTERRUPT, other, nullptr, nullptr);
          }
        }
      } else if (marks == 1 && *call != SYS_restart_syscall) {
        // That one is the kernel's: back into a sleep that we interrupted.
        ++counts_[process][*call];
      }
    }
    note_begun(thread);
    if (marks == 2) {
      ptrace(PTRACE_DETACH, thread, nullptr, Number(deliver));
      process_of.erase(thread);
    } else {
      ptrace(PTRACE_SYSCALL, thread, nullptr, Number(deliver));
    }
  }
}

DeathAtSyscall::DeathAtSyscall(pid_t process, uint64_t count)
    : process_(process), count_(count) {
  std::promise<std::string> attached;
  std::future<std::string> problem = attached.get_future();
  tracer_ = std::thread([this, attached = std::move(attached)]() mutable {
    Trace(std::move(attached));
  });
  problem_ = problem.get();
}

DeathAtSyscall::~DeathAtSyscall() {
  if (!tracer_.joinable()) return;
  Stop();
  tracer_.join();
}

void DeathAtSyscall::Stop() {
  stop_ = true;
  // A thread that stops wakes the tracer; this signal means nothing else.
  if (!killed_) kill(process_, SIGCONT);
}

bool DeathAtSyscall::Await() {
  tracer_.join();
  return killed_;
}

// The kernel lets go of all threads as this one ends: of the dead, so that
// their parent hears of it, and of the living, which go on.
void DeathAtSyscall::Trace(std::promise<std::string> attached) {
  std::vector<pid_t> threads;
  const std::string problem =
      Seize(process_, PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE, &threads);
  attached.set_value(problem);
  if (!problem.empty()) return;
  while (!stop_) {
    int status = 0;
    const pid_t thread = waitpid(-1, &status, __WALL | __WNOTHREAD);
    if (thread < 0) return;
    if (!WIFSTOPPED(status)) continue;
    if (BegunCall(thread, status) && ++seen_ == count_) {
      killed_ = true;
      kill(process_, SIGKILL);
      return;
    }
    ptrace(PTRACE_SYSCALL, thread, nullptr, Number(SignalOf(status)));
  }
}

}  // namespace rknnd::integration
