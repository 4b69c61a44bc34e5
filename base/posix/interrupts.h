// The signals that ask a program to end (SIGINT, SIGTERM, SIGHUP) as a
// descriptor, for programs that have something to put away first: children, a
// folder, a terminal.

#ifndef BASE_POSIX_INTERRUPTS_H_
#define BASE_POSIX_INTERRUPTS_H_

#include <signal.h>

#include <utility>

#include "base/posix/unique_fd.h"
#include "base/values/expected.h"

namespace rknnd::base {

// Catches them as long as it is there, but those that the program was started
// to ignore. Thread: the program's first, before it makes others.
class Interrupts {
 public:
  static Expected<Interrupts> Catch();
  Interrupts(Interrupts&& other) noexcept
      : fd_(std::move(other.fd_)), before_(other.before_) {}
  Interrupts& operator=(Interrupts&&) = delete;
  ~Interrupts();

  // Readable once one has come; for poll, not to be read.
  [[nodiscard]] int fd() const { return fd_.get(); }
  // The signal that has come, taken away from fd(); 0: none has.
  [[nodiscard]] int Take() const;

 private:
  Interrupts(UniqueFd fd, const sigset_t& before)
      : fd_(std::move(fd)), before_(before) {}

  UniqueFd fd_;
  sigset_t before_;
};

}  // namespace rknnd::base

#endif  // BASE_POSIX_INTERRUPTS_H_
