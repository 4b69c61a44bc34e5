// A peer of the session socket without the client library, which would not send
// what attackers do.

#ifndef BENCH_HOSTILE_RAW_PEER_H_
#define BENCH_HOSTILE_RAW_PEER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/posix/mapping.h"
#include "base/posix/unique_fd.h"
#include "base/values/expected.h"
#include "proto/wire/codec.h"
#include "proto/wire/frame.h"
#include "proto/wire/ring.h"

namespace rknnd::bench {

// Thread: any, one at a time. Throws std::runtime_error.
class RawPeer {
 public:
  // Waits for its turn where the daemon has no place for one more connection
  // just now.
  explicit RawPeer(const std::string& socket);

  // Says Hello, and keeps what Welcome brings; whether it was welcome.
  bool SayHello();

  // A request and its reply; a reply that says no is its error, kUnavailable
  // the end of the connection.
  template <class Message>
  base::Expected<wire::Frame> Ask(wire::Verb verb, const Message& message,
                                  int fd = -1) {
    auto body = wire::Encode(message);
    if (!body) return std::move(body).error();
    return AskBytes(verb, *std::move(body), fd);
  }
  // A model's bytes, and a context of it.
  base::Expected<void> Load(const std::string& name, const std::string& model,
                            uint32_t context);
  // The number of a buffer that is bound to this input or output of a context
  // in its type and size.
  base::Expected<void> BindNew(uint32_t context, const wire::TensorAttr& attr,
                               bool output, uint32_t buffer);
  [[nodiscard]] const wire::ContextInfo& info() const { return info_; }

  // One datagram of anything, without waiting; whether it was taken.
  bool SendBytes(std::span<const std::byte> bytes,
                 std::span<const int> fds = {});

  wire::Ring& ring() { return *reinterpret_cast<wire::Ring*>(mapping_.data()); }
  void Ring();
  void Push(const wire::Submission& entry);
  // Pushes and rings, and looks for the answer until it is there.
  void Run(wire::Submission entry);

  [[nodiscard]] int socket() const { return socket_.get(); }
  [[nodiscard]] int doorbell() const { return doorbell_.get(); }

 private:
  base::Expected<wire::Frame> AskBytes(wire::Verb verb,
                                       std::vector<std::byte> body, int fd);

  base::UniqueFd socket_, doorbell_;
  base::Mapping mapping_;
  wire::ContextInfo info_;
  uint32_t last_request_ = 0, last_sequence_ = 0;
};

std::vector<std::byte> Noise(uint64_t seed, size_t size);

}  // namespace rknnd::bench

#endif  // BENCH_HOSTILE_RAW_PEER_H_
