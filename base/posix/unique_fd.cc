// Closes and duplicates descriptors. Called everywhere, on any thread.

#include "base/posix/unique_fd.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <string>

#include "base/posix/close_hook.h"

namespace rknnd::base {
namespace {

std::atomic<CloseHook> close_hook = nullptr;

}  // namespace

void SetCloseHook(CloseHook hook) { close_hook.store(hook); }

void UniqueFd::reset(int fd) {
  const int old = std::exchange(fd_, fd);
  if (old < 0 || old == fd) return;
  // An error path that closes must still see why it is one. Never repeated:
  // Linux has freed the number even when close is interrupted.
  const int saved_errno = errno;
  const CloseHook hook = close_hook.load(std::memory_order_acquire);
  if (hook == nullptr || !hook(old)) close(old);
  errno = saved_errno;
}

Expected<UniqueFd> Duplicate(int fd) {
  // Never a standard stream of a host program that has closed its own.
  UniqueFd copy(fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
  if (!copy.valid()) {
    return ErrnoError(errno, "duplicate fd '" + std::to_string(fd) + "'");
  }
  return copy;
}

}  // namespace rknnd::base
