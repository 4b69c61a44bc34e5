// The signal handlers behind Guarded(). Called by workers and by whoever reads
// or writes imported memory, on any thread. Whether that memory is still there
// is up to a client.
//
// How it works: the guarded thread notes its range and a place to jump back
// to in a thread-local; the handler runs on the faulting thread, looks there,
// and jumps, or hands the signal on to the handler that was there before us.

#include "driver/memory/fault_guard.h"

#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>

namespace rknnd::driver {

// What the handler may do with a patch.
struct FaultPatchAccess {
  // Whether what faulted at `address` can go on.
  static bool Mend(const FaultPatch* patch, uintptr_t address);
};

namespace {

struct Guard {
  // Page aligned: some CPUs report no more than the page.
  uintptr_t begin = 0, end = 0;
  sigjmp_buf back;
  sigset_t blocked;  // by the thread when it faulted
};

// What the kernel saves of a sigset_t, which is larger.
constexpr size_t kKernelSigsetSize = _NSIG / 8;

// Initial-exec: reading it in a signal handler allocates nothing, also inside
// a shared library that is loaded on demand.
__attribute__((tls_model(
    "initial-exec"))) thread_local Guard* volatile current_guard = nullptr;
__attribute__((tls_model(
    "initial-exec"))) thread_local FaultPatch* volatile current_patch = nullptr;
// Known before a handler needs it.
uintptr_t page_size = 0;

// What was installed before us. Written before our handlers are in force.
struct sigaction previous_bus;
struct sigaction previous_segv;

void HandOn(int signal, siginfo_t* info, void* context) {
  const struct sigaction& previous =
      signal == SIGBUS ? previous_bus : previous_segv;
  if ((previous.sa_flags & SA_SIGINFO) != 0) {
    previous.sa_sigaction(signal, info, context);
    return;
  }
  // A fault that is ignored is repeated for ever.
  const bool is_fault = info->si_code > 0;
  if (previous.sa_handler == SIG_IGN && !is_fault) return;
  if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN) {
    previous.sa_handler(signal);
    return;
  }
  struct sigaction fatal = {};
  fatal.sa_handler = SIG_DFL;
  sigaction(signal, &fatal, nullptr);
  // A fault happens again on return, and then ends the process at the place
  // where it belongs; a signal that somebody sent has to be sent again.
  if (!is_fault) raise(signal);
}

void OnFault(int signal, siginfo_t* info, void* context) {
  Guard* guard = current_guard;
  const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  // A code of 0 or less: sent by a process, the address means nothing.
  if (guard != nullptr && info->si_code > 0 && address >= guard->begin &&
      address < guard->end) {
    current_guard = nullptr;
    const auto* interrupted = static_cast<const ucontext_t*>(context);
    sigemptyset(&guard->blocked);
    std::memcpy(&guard->blocked, &interrupted->uc_sigmask, kKernelSigsetSize);
    siglongjmp(guard->back, 1);
  }
  if (info->si_code > 0 && FaultPatchAccess::Mend(current_patch, address)) {
    return;
  }
  HandOn(signal, info, context);
}

void Install(int signal, struct sigaction* previous) {
  // Known before it can be needed.
  sigaction(signal, nullptr, previous);
  struct sigaction ours = {};
  ours.sa_sigaction = OnFault;
  // SA_ONSTACK: the handler before us may count on its own stack.
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&ours.sa_mask);
  sigaction(signal, &ours, nullptr);
}

}  // namespace

void InstallFaultGuard() {
  static std::once_flag once;
  std::call_once(once, [] {
    page_size = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
    Install(SIGBUS, &previous_bus);
    Install(SIGSEGV, &previous_segv);
  });
}

bool RunGuarded(std::span<const std::byte> range, void (*access)(void*),
                void* argument) {
  static const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  Guard guard;
  const auto begin = reinterpret_cast<uintptr_t>(range.data());
  guard.begin = begin & ~(page - 1);
  guard.end = (begin + range.size() + page - 1) & ~(page - 1);
  // The mask is not saved here, which would be a system call for each access:
  // it comes from the handler, where there was a fault.
  if (sigsetjmp(guard.back, 0) != 0) {
    pthread_sigmask(SIG_SETMASK, &guard.blocked, nullptr);
    return false;
  }
  current_guard = &guard;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  access(argument);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  current_guard = nullptr;
  return true;
}

bool FaultPatchAccess::Mend(const FaultPatch* patch, uintptr_t address) {
  for (; patch != nullptr; patch = patch->outer_) {
    if (address < patch->begin_ || address >= patch->end_) continue;
    const int kept_errno = errno;
    // The result is lost, so all pages but the first and last go, which others'
    // bytes may be in: else each page would be a mapping of its own, of which a
    // process may not have many.
    uintptr_t begin = patch->begin_ + page_size;
    uintptr_t end = patch->end_ & ~(page_size - 1);
    const uintptr_t page = address & ~(page_size - 1);
    if (page < begin || page >= end) {
      begin = page;
      end = page + page_size;
    }
    // Another thread may do the same at the same time: the pages are of zeros
    // then too.
    const void* const zeros = mmap(
        reinterpret_cast<void*>(begin), end - begin, PROT_READ | PROT_WRITE,
        MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    errno = kept_errno;
    if (zeros == MAP_FAILED) return false;
    patch->torn_->store(true, std::memory_order_relaxed);
    return true;
  }
  return false;
}

FaultPatch::FaultPatch(std::span<std::byte> range, std::atomic<bool>* torn)
    : begin_(reinterpret_cast<uintptr_t>(range.data())),
      end_(begin_ + range.size()),
      torn_(torn),
      outer_(current_patch) {
  // Some CPUs report no more than the page.
  if (page_size != 0) begin_ &= ~(page_size - 1);
  current_patch = this;
  std::atomic_signal_fence(std::memory_order_seq_cst);
}

FaultPatch::~FaultPatch() {
  std::atomic_signal_fence(std::memory_order_seq_cst);
  current_patch = outer_;
}

}  // namespace rknnd::driver
