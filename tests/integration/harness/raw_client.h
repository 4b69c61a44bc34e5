// A peer of the session socket without the client library: what a hostile or
// broken process could send, and the test's own window into the daemon.

#ifndef TESTS_INTEGRATION_HARNESS_RAW_CLIENT_H_
#define TESTS_INTEGRATION_HARNESS_RAW_CLIENT_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/posix/mapping.h"
#include "base/posix/unique_fd.h"
#include "base/values/expected.h"
#include "proto/wire/codec.h"
#include "proto/wire/frame.h"
#include "proto/wire/ring.h"

namespace rknnd::integration {

// Thread: any, one at a time.
class RawClient {
 public:
  // Connects, and fails the test when it cannot.
  explicit RawClient(const std::string& path);

  // Says Hello as a client does and keeps what Welcome brings.
  void SayHello();

  // A request and its reply; kDeadlineExceeded, or kUnavailable once the daemon
  // has closed the connection. A reply that says no is its error.
  base::Expected<wire::Frame> Ask(wire::Verb verb, std::vector<std::byte> body,
                                  base::UniqueFd fd = {});
  template <class Message>
  base::Expected<wire::Frame> Ask(wire::Verb verb, const Message& message,
                                  base::UniqueFd fd = {}) {
    auto body = wire::Encode(message);
    if (!body.ok()) return std::move(body).error();
    return Ask(verb, *std::move(body), std::move(fd));
  }
  // Empty, and the test failed, when there is none.
  wire::Report Report(rknnd_v1_ReportKind kind);

  // One datagram of anything. False when the connection is closed.
  bool SendBytes(std::span<const std::byte> bytes,
                 std::span<const int> fds = {});
  // Waits for the next frame, or for the end.
  base::Expected<wire::Frame> Receive();
  // Whether the daemon ends this connection within the test's patience.
  bool WaitForClose();

  // The ring, as the daemon reads it.
  wire::Ring& ring() { return *reinterpret_cast<wire::Ring*>(mapping_.data()); }
  void Ring();  // the doorbell
  // Puts an entry at the tail; slot and sequence are its own.
  void Push(const wire::Submission& entry);
  // Pushes, rings and waits: the code and text of the completion.
  base::Error Submit(wire::Submission entry);

  [[nodiscard]] int socket() const { return socket_.get(); }
  [[nodiscard]] int doorbell() const { return doorbell_.get(); }
  [[nodiscard]] const wire::Welcome& welcome() const { return welcome_; }

 private:
  base::UniqueFd socket_, doorbell_;
  base::Mapping mapping_;
  wire::Welcome welcome_{};
  uint32_t last_request_ = 0;
  uint32_t last_sequence_ = 0;
};

}  // namespace rknnd::integration

#endif  // TESTS_INTEGRATION_HARNESS_RAW_CLIENT_H_
