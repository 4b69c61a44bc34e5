// See interrupts.h.

#include "base/posix/interrupts.h"

#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>

namespace rknnd::base {

Expected<Interrupts> Interrupts::Catch() {
  sigset_t signals, before;
  sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction action = {};
    sigaction(signal, nullptr, &action);
    // nohup, or a shell's background: blocked, it would arrive all the same.
    if (action.sa_handler != SIG_IGN) sigaddset(&signals, signal);
  }
  UniqueFd fd(signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd.valid()) return ErrnoError(errno, "signalfd");
  pthread_sigmask(SIG_BLOCK, &signals, &before);
  return Interrupts(std::move(fd), before);
}

Interrupts::~Interrupts() {
  if (fd_.valid()) pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

int Interrupts::Take() const {
  signalfd_siginfo info = {};
  if (read(fd_.get(), &info, sizeof info) != sizeof info) return 0;
  return static_cast<int>(info.ssi_signo);
}

}  // namespace rknnd::base
