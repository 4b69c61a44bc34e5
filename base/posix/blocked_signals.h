// Threads of ours take no signals: a handler of the program they live in (with
// the target `local:`) or of our own must not run on them, and no call into a
// driver may be interrupted.

#ifndef BASE_POSIX_BLOCKED_SIGNALS_H_
#define BASE_POSIX_BLOCKED_SIGNALS_H_

#include <csignal>

namespace rknnd::base {

// While one lives, the calling thread and those it creates have all signals
// blocked but those a fault raises, which cannot wait and which
// driver/memory/fault_guard.h handles. Thread: any.
class BlockedSignals {
 public:
  BlockedSignals() {
    sigset_t all;
    sigfillset(&all);
    for (const int fault :
         {SIGBUS, SIGSEGV, SIGFPE, SIGILL, SIGTRAP, SIGABRT}) {
      sigdelset(&all, fault);
    }
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~BlockedSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

 private:
  sigset_t before_;
};

}  // namespace rknnd::base

#endif  // BASE_POSIX_BLOCKED_SIGNALS_H_
