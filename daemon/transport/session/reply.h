// What a request is answered with, and the few words in which those who handle
// requests say it.

#ifndef DAEMON_TRANSPORT_SESSION_REPLY_H_
#define DAEMON_TRANSPORT_SESSION_REPLY_H_

#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/posix/unique_fd.h"
#include "base/status/status.h"
#include "proto/wire/codec.h"
#include "proto/wire/frame.h"

namespace rknnd::transport {

struct Reply {
  absl::Status status;  // not OK: the body is made from it
  std::vector<std::byte> body;
  std::vector<base::UniqueFd> fds;
  size_t uncharged = 0;  // bytes in `fds` that nobody is charged for
};
using ReplyCallback = std::function<void(Reply)>;

// Takes an event for the client. False: the client does not read, and there is
// no room for it; the connection goes on without. Thread: loop.
using EventCallback = std::function<bool(wire::Frame)>;

inline Reply Failure(absl::Status status) {
  return {std::move(status), {}, {}};
}

template <class Message>
Reply Answer(const Message& message, std::vector<base::UniqueFd> fds = {}) {
  auto body = wire::Encode(message);
  if (!body.ok()) return Failure(base::ToStatus(body.error()));
  return {absl::OkStatus(), *std::move(body), std::move(fds)};
}

inline Reply Done(absl::Status status) {
  if (!status.ok()) return Failure(std::move(status));
  return Answer(wire::Empty{});
}

template <class Message>
absl::StatusOr<Message> Decoded(const wire::Frame& request) {
  return base::ToStatusOr(wire::Decode<Message>(request.body));
}

}  // namespace rknnd::transport

#endif  // DAEMON_TRANSPORT_SESSION_REPLY_H_
