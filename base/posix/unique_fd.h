// The one owner of a file descriptor. A UniqueFd parameter takes the fd, an
// `int fd` parameter borrows it for the call.

#ifndef BASE_POSIX_UNIQUE_FD_H_
#define BASE_POSIX_UNIQUE_FD_H_

#include <utility>

#include "base/values/expected.h"

namespace rknnd::base {

// Thread: any, one at a time.
class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(other.release()) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    if (this != &other) reset(other.release());
    return *this;
  }
  UniqueFd(const UniqueFd&) = delete;
  UniqueFd& operator=(const UniqueFd&) = delete;
  ~UniqueFd() { reset(); }

  [[nodiscard]] int get() const { return fd_; }
  [[nodiscard]] bool valid() const { return fd_ >= 0; }
  [[nodiscard]] int release() { return std::exchange(fd_, -1); }
  void reset(int fd = -1);

 private:
  int fd_ = -1;
};

// A second descriptor of the same open file, close-on-exec.
Expected<UniqueFd> Duplicate(int fd);

}  // namespace rknnd::base

#endif  // BASE_POSIX_UNIQUE_FD_H_
