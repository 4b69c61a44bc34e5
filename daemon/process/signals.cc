// See the header.

#include "daemon/process/signals.h"

#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <utility>

#include "base/status/status.h"

namespace rknnd {

absl::StatusOr<Signals> Signals::Block() {
  std::signal(SIGPIPE, SIG_IGN);
  sigset_t signals;
  sigemptyset(&signals);
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) {
    sigaddset(&signals, number);
  }
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  base::UniqueFd fd(signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd.valid()) return base::ToStatus(base::ErrnoError(errno, "signalfd"));
  return Signals(std::move(fd));
}

absl::Status Signals::Watch(base::EventLoop& loop,
                            std::function<void(int)> arrived) {
  RKNND_ASSIGN_OR_RETURN(
      watch_, base::ToStatusOr(loop.Watch(
                  fd_.get(), EPOLLIN,
                  [fd = fd_.get(), arrived = std::move(arrived)](uint32_t) {
                    signalfd_siginfo signal{};
                    if (read(fd, &signal, sizeof signal) <= 0) return;
                    arrived(static_cast<int>(signal.ssi_signo));
                  })));
  loop_ = &loop;
  return absl::OkStatus();
}

void Signals::Unwatch() { loop_->Unwatch(watch_); }

}  // namespace rknnd
