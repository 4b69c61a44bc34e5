// Moves bytes that nobody reads on their way from one socket to another, so
// that they are not copied into this process and out of it again (splice(2)):
// the kernel hands on its pages. A sender on this machine may still change
// those that are its own (MSG_ZEROCOPY), so whoever takes them looks once.

#ifndef DAEMON_TRANSPORT_GRPC_RELAY_PAYLOAD_PIPE_H_
#define DAEMON_TRANSPORT_GRPC_RELAY_PAYLOAD_PIPE_H_

#include <sys/types.h>

#include <cstddef>
#include <vector>

#include "base/posix/unique_fd.h"

namespace rknnd::transport {

// Thread: one. It holds no bytes between two calls, so one serves all sockets.
class PayloadPipe {
 public:
  // Where the kernel gives none, it moves nothing.
  PayloadPipe();

  // In place of a number of bytes; the first two as in PeerStream.
  static constexpr ssize_t kLater = -1;   // `from` has nothing yet
  static constexpr ssize_t kBroken = -2;  // `from` never will have
  static constexpr ssize_t kCannotMove =
      -3;  // bytes are to be read and written

  // Whether it moves anything.
  [[nodiscard]] bool works() const { return in_.valid(); }
  // How many bytes `from` has now.
  [[nodiscard]] static size_t Waiting(int from);
  // Whether `to` takes some now, so that none are left of a Move but rarely.
  [[nodiscard]] static bool Takes(int to);
  // How many of at most `most` bytes have left `from`; zero: its other side has
  // sent all. Those that `to` did not take, for now or for ever, are in `rest`.
  ssize_t Move(int from, int to, size_t most, std::vector<std::byte>* rest);

 private:
  // False: it could not be emptied.
  bool Drain(size_t size, std::vector<std::byte>* rest);
  // Nothing is moved from then on.
  void Close();

  base::UniqueFd out_, in_;  // ends; none: it cannot
};

}  // namespace rknnd::transport

#endif  // DAEMON_TRANSPORT_GRPC_RELAY_PAYLOAD_PIPE_H_
