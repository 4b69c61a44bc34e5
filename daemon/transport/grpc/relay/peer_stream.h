// The bytes of a connection to a peer, encrypted or not. Never blocks.

#ifndef DAEMON_TRANSPORT_GRPC_RELAY_PEER_STREAM_H_
#define DAEMON_TRANSPORT_GRPC_RELAY_PEER_STREAM_H_

#include <sys/types.h>

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace rknnd::transport {

// Thread: the relay's.
class PeerStream {
 public:
  // In place of a number of bytes.
  static constexpr ssize_t kLater = -1;   // when the socket is ready again
  static constexpr ssize_t kBroken = -2;  // never

  virtual ~PeerStream() = default;
  // Zero once it may be read and written; kLater, kBroken.
  virtual ssize_t Begin() = 0;
  // Zero: the peer has sent all.
  virtual ssize_t Read(std::span<std::byte> to) = 0;
  virtual ssize_t Write(std::span<const std::byte> from) = 0;
  // Whether something can be read that the socket does not know of.
  [[nodiscard]] virtual bool pending() const = 0;
  // Whether what was put off waits for the socket to take bytes.
  [[nodiscard]] virtual bool wants_to_write() const = 0;
  // The socket, where what it carries is what is read; -1 where it is not.
  [[nodiscard]] virtual int plain_fd() const { return -1; }
  // Of the peer's certificate, once it has begun.
  [[nodiscard]] virtual std::vector<std::string> names() const = 0;
};

// Without encryption.
class PlainStream final : public PeerStream {
 public:
  // `fd` outlives it.
  explicit PlainStream(int fd) : fd_(fd) {}

  ssize_t Begin() override { return 0; }
  ssize_t Read(std::span<std::byte> to) override;
  ssize_t Write(std::span<const std::byte> from) override;
  [[nodiscard]] bool pending() const override { return false; }
  [[nodiscard]] bool wants_to_write() const override { return false; }
  [[nodiscard]] int plain_fd() const override { return fd_; }
  [[nodiscard]] std::vector<std::string> names() const override { return {}; }

 private:
  const int fd_;
};

}  // namespace rknnd::transport

#endif  // DAEMON_TRANSPORT_GRPC_RELAY_PEER_STREAM_H_
