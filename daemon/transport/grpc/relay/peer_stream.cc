#include "daemon/transport/grpc/relay/peer_stream.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

namespace rknnd::transport {
namespace {

ssize_t Failed() {
  const bool later = errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
  return later ? PeerStream::kLater : PeerStream::kBroken;
}

}  // namespace

ssize_t PlainStream::Read(std::span<std::byte> to) {
  const ssize_t got = read(fd_, to.data(), to.size());
  return got >= 0 ? got : Failed();
}

ssize_t PlainStream::Write(std::span<const std::byte> from) {
  const ssize_t sent = send(fd_, from.data(), from.size(), MSG_NOSIGNAL);
  return sent >= 0 ? sent : Failed();
}

}  // namespace rknnd::transport
