#include "daemon/transport/grpc/relay/payload_pipe.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace rknnd::transport {
namespace {

constexpr int kPipeBytes = 256 << 10;
constexpr unsigned kFlags = SPLICE_F_NONBLOCK | SPLICE_F_MOVE;

bool NothingNow() {
  return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

}  // namespace

PayloadPipe::PayloadPipe() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) return;
  out_.reset(ends[0]);
  in_.reset(ends[1]);
  // A pipe has 16 pages at first. Where the kernel gives it no more, less is
  // moved at a time.
  fcntl(in_.get(), F_SETPIPE_SZ, kPipeBytes);
}

size_t PayloadPipe::Waiting(int from) {
  int there = 0;
  return ioctl(from, FIONREAD, &there) == 0 ? static_cast<size_t>(there) : 0;
}

bool PayloadPipe::Takes(int to) {
  pollfd polled{to, POLLOUT, 0};
  return poll(&polled, 1, 0) == 1 && polled.revents == POLLOUT;
}

ssize_t PayloadPipe::Move(int from, int to, size_t most,
                          std::vector<std::byte>* rest) {
  const ssize_t got = splice(from, nullptr, in_.get(), nullptr, most, kFlags);
  if (got < 0 && NothingNow()) return kLater;
  if (got < 0 && (errno == EINVAL || errno == ENOSYS || errno == EPERM)) {
    // A kernel, or a filter of system calls, that does not move bytes.
    Close();
    return kCannotMove;
  }
  if (got <= 0) return got < 0 ? kBroken : 0;
  auto left = static_cast<size_t>(got);
  while (left > 0) {
    const ssize_t gave = splice(out_.get(), nullptr, to, nullptr, left, kFlags);
    if (gave <= 0) break;
    left -= static_cast<size_t>(gave);
  }
  if (left > 0 && !Drain(left, rest)) {
    // No byte of this connection may come to another one.
    Close();
    return kBroken;
  }
  return got;
}

bool PayloadPipe::Drain(size_t size, std::vector<std::byte>* rest) {
  rest->resize(size);
  for (size_t at = 0; at < size;) {
    const ssize_t got = read(out_.get(), rest->data() + at, size - at);
    if (got <= 0) return false;
    at += static_cast<size_t>(got);
  }
  return true;
}

void PayloadPipe::Close() {
  out_.reset();
  in_.reset();
}

}  // namespace rknnd::transport
