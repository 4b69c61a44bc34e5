// See syscalls.h. One thread does all of it: a tracer is a thread.

#include "tests/integration/harness/syscalls.h"

#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <utility>

namespace rknnd::integration {
namespace {

void* Number(uintptr_t value) { return reinterpret_cast<void*>(value); }

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
    for (const auto& entry : std::filesystem::directory_iterator(
             "/proc/" + std::to_string(process) + "/task")) {
      const pid_t thread = std::stoi(entry.path().filename().string());
      if (ptrace(PTRACE_SEIZE, thread, nullptr,
                 Number(PTRACE_O_TRACESYSGOOD)) != 0 ||
          ptrace(PTRACE_INTERRUPT, thread, nullptr, nullptr) != 0) {
        problem = std::string("ptrace: ") + std::strerror(errno);
      } else {
        process_of[thread] = process;
      }
    }
  }
  int marks = problem.empty() ? 0 : 2;  // 2: all is let go of
  size_t not_begun = process_of.size();
  std::map<pid_t, bool> begun;
  if (!problem.empty()) attached.set_value(problem);
  while (!process_of.empty()) {
    int status = 0;
    const pid_t thread = waitpid(-1, &status, __WALL | __WNOTHREAD);
    if (thread < 0) return;
    if (!WIFSTOPPED(status)) {
      process_of.erase(thread);
      continue;
    }
    const int signal = WSTOPSIG(status);
    uintptr_t deliver = 0;
    if (signal == (SIGTRAP | 0x80)) {
      __ptrace_syscall_info info{};
      ptrace(PTRACE_GET_SYSCALL_INFO, thread, Number(sizeof info), &info);
      if (info.op == PTRACE_SYSCALL_INFO_ENTRY && marks < 2) {
        const pid_t process = process_of[thread];
        if (process == marker && info.entry.nr == SYS_getppid) {
          if (++marks == 2) {
            for (const auto& [other, unused] : process_of) {
              ptrace(PTRACE_INTERRUPT, other, nullptr, nullptr);
            }
          }
        } else if (marks == 1 && info.entry.nr != SYS_restart_syscall) {
          // That one is the kernel's: back into a sleep that we interrupted.
          ++counts_[process][info.entry.nr];
        }
      }
    } else if (status >> 16 != PTRACE_EVENT_STOP) {
      deliver = static_cast<uintptr_t>(signal);
    }
    if (!begun[thread]) {
      begun[thread] = true;
      if (--not_begun == 0 && problem.empty()) attached.set_value("");
    }
    if (marks == 2) {
      ptrace(PTRACE_DETACH, thread, nullptr, Number(deliver));
      process_of.erase(thread);
    } else {
      ptrace(PTRACE_SYSCALL, thread, nullptr, Number(deliver));
    }
  }
}

}  // namespace rknnd::integration
