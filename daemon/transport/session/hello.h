// How a session begins, over whichever transport: what both ends can do, or who
// is to be updated. Called by the transports (connection.h, grpc/session) with
// a Hello that nobody has looked at.

#ifndef DAEMON_TRANSPORT_SESSION_HELLO_H_
#define DAEMON_TRANSPORT_SESSION_HELLO_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "base/posix/clock.h"
#include "daemon/core/service.h"
#include "daemon/core/sessions/session.h"
#include "daemon/core/terms/types.h"
#include "proto/wire/codec.h"

namespace rknnd::transport {

// What was agreed on.
struct Greeting {
  uint32_t protocol = 0;
  uint64_t features = 0;  // bits both ends know, and that make sense here
};

// `useless`: features that mean nothing where the client is. The error names
// both sides and which of them to update. Thread: loop.
absl::StatusOr<Greeting> Greet(const wire::Hello& hello,
                               const core::Service& service,
                               uint64_t useless = 0);

// The body of the answer. `spin`: how long a client may wait awake. Thread:
// loop.
absl::StatusOr<std::vector<std::byte>> EncodeWelcome(
    const Greeting& greeting, const core::Session& session,
    const core::Service& service, const core::SessionLimits& limits,
    base::Nanoseconds spin);

}  // namespace rknnd::transport

#endif  // DAEMON_TRANSPORT_SESSION_HELLO_H_
