// The older CPU: preloaded into a program, it takes features out of what CPUID
// says, down to the level that RKNND_OLDER_CPU names, so that the program and
// its libraries choose the kernels they would choose on such a CPU. The kernel
// makes CPUID fault, for this thread and those it makes; the handler executes
// it and steps over. Linux on x86-64 with "cpuid_fault" in /proc/cpuinfo; does
// nothing where the kernel refuses.
//
// The program's own handler of SIGSEGV is kept behind ours, and nobody blocks
// that signal: a fault while it is blocked ends a process.
//
// Needs nothing but libc, takes no locks and allocates nothing.

#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>

#include "bench/peers/cpu_level.h"

// glibc's own names for what this library stands before.
extern "C" int __sigaction(int, const struct sigaction*,  // NOLINT
                           struct sigaction*) noexcept;

namespace {

using rknnd::bench::CpuFeatures;

constexpr unsigned long kSetCpuid = 0x1012;  // ARCH_SET_CPUID
constexpr size_t kKernelSignalSetBytes = 8;
// What pthread_cancel and setuid send: never blocked either, as libc has it.
constexpr int kCancelSignal = 32, kSetIdSignal = 33;

bool active = false;
CpuFeatures hidden;
// Of the program. Who sets it while another thread faults has a race of its
// own.
struct sigaction kept = {};

long AllowCpuid(bool allowed) {
  return syscall(SYS_arch_prctl, kSetCpuid, allowed ? 1UL : 0UL);
}

bool IsCpuid(const siginfo_t& info, uintptr_t at) {
  constexpr unsigned char kCpuid[] = {0x0f, 0xa2};
  // A general protection fault, behind which the instruction can be read.
  return info.si_code == SI_KERNEL &&
         std::memcmp(reinterpret_cast<const void*>(at), kCpuid,  // NOLINT
                     sizeof kCpuid) == 0;
}

void AnswerCpuid(greg_t* registers) {
  const auto leaf = static_cast<uint32_t>(registers[REG_RAX]);
  const auto subleaf = static_cast<uint32_t>(registers[REG_RCX]);
  uint32_t a = leaf, b = 0, c = subleaf, d = 0;
  AllowCpuid(true);
  asm volatile("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
  AllowCpuid(false);
  if (leaf == 1) {
    c &= ~hidden.ecx_1;
  } else if (leaf == 7 && subleaf == 0) {
    b &= ~hidden.ebx_7;
    c &= ~hidden.ecx_7;
    d &= ~hidden.edx_7;
  } else if (leaf == 7 && subleaf == 1) {
    a &= ~hidden.eax_7_1;
    d &= ~hidden.edx_7_1;
  }
  registers[REG_RAX] = a;
  registers[REG_RBX] = b;
  registers[REG_RCX] = c;
  registers[REG_RDX] = d;
  registers[REG_RIP] += 2;
}

// To the program's own handler; where it has none, back to the fault, which
// ends the process now.
void PassOn(int signal, siginfo_t* info, void* context) {
  if ((kept.sa_flags & SA_SIGINFO) != 0) {
    kept.sa_sigaction(signal, info, context);
  } else if (kept.sa_handler != SIG_DFL && kept.sa_handler != SIG_IGN) {
    kept.sa_handler(signal);
  } else {
    struct sigaction none = {};
    none.sa_handler = SIG_DFL;
    __sigaction(signal, &none, nullptr);
    if (info->si_code <= 0) raise(signal);  // another process sent it
  }
}

void OnFault(int signal, siginfo_t* info, void* context) {
  greg_t* const registers =
      static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  if (IsCpuid(*info, static_cast<uintptr_t>(registers[REG_RIP]))) {
    AnswerCpuid(registers);
  } else {
    PassOn(signal, info, context);
  }
}

// Before the constructors of every other library (initfirst), some of which ask
// for the CPU: libc's environment is not there yet.
__attribute__((constructor)) void GrowOld(int, char**, char** environment) {
  using rknnd::bench::kOlderCpuVariable;
  constexpr size_t kLength = sizeof kOlderCpuVariable - 1;
  const rknnd::bench::CpuLevel* level = nullptr;
  for (; *environment != nullptr && level == nullptr; ++environment) {
    if (std::strncmp(*environment, kOlderCpuVariable, kLength) == 0 &&
        (*environment)[kLength] == '=') {
      level = rknnd::bench::FindCpuLevel(*environment + kLength + 1);
    }
  }
  if (level == nullptr) return;
  hidden = rknnd::bench::HiddenFeatures(*level);
  struct sigaction ours = {};
  ours.sa_sigaction = OnFault;
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
  sigfillset(&ours.sa_mask);
  if (__sigaction(SIGSEGV, &ours, &kept) != 0) return;
  if (AllowCpuid(false) == 0) {
    active = true;
  } else {
    __sigaction(SIGSEGV, &kept, nullptr);
  }
}

}  // namespace

// --- libc's, as the program calls them ---------------------------------------

#define PRELOADED extern "C" __attribute__((visibility("default")))

PRELOADED int sigaction(int signal, const struct sigaction* action,
                        struct sigaction* old) noexcept {
  if (!active || signal != SIGSEGV) return __sigaction(signal, action, old);
  const struct sigaction before = kept;
  if (action != nullptr) kept = *action;
  if (old != nullptr) *old = before;
  return 0;
}

PRELOADED sighandler_t signal(int signal, sighandler_t handler) noexcept {
  struct sigaction action = {}, old = {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  return sigaction(signal, &action, &old) == 0 ? old.sa_handler : SIG_ERR;
}

PRELOADED int sigprocmask(int how, const sigset_t* set,
                          sigset_t* old) noexcept {
  sigset_t allowed;
  if (set != nullptr) {
    allowed = *set;
    if (how != SIG_UNBLOCK) {
      if (active) sigdelset(&allowed, SIGSEGV);
      // Not by sigdelset, which knows them not.
      auto* const word = reinterpret_cast<uint64_t*>(&allowed);
      *word &= ~(uint64_t{1} << (kCancelSignal - 1) |
                 uint64_t{1} << (kSetIdSignal - 1));
    }
    set = &allowed;
  }
  return static_cast<int>(
      syscall(SYS_rt_sigprocmask, how, set, old, kKernelSignalSetBytes));
}

PRELOADED int pthread_sigmask(int how, const sigset_t* set,
                              sigset_t* old) noexcept {
  const int before = errno;
  if (sigprocmask(how, set, old) == 0) return 0;
  const int error = errno;
  errno = before;
  return error;
}
