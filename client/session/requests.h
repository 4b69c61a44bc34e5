// How a session asks: one request at a time, with the turn, again on the next
// daemon when the one that had it died. Included by the files that are
// SessionTarget's calls, and by nobody else; on the program's threads.

#ifndef CLIENT_SESSION_REQUESTS_H_
#define CLIENT_SESSION_REQUESTS_H_

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "client/session/session_target.h"
#include "client/session/turn.h"

namespace rknnd::client {

// Loading a model compiles it, which takes seconds on a small board.
inline constexpr base::Nanoseconds kLoadTimeout = 300 * base::kSecond;
// All else is short, but waits behind the loading of other clients' models.
inline constexpr base::Nanoseconds kRequestTimeout = 60 * base::kSecond;

template <class Message>
base::Expected<wire::Frame> Send(Connection& connection, wire::Verb verb,
                                 const Message& message,
                                 const std::vector<int>& fds = {},
                                 base::Nanoseconds timeout = kRequestTimeout) {
  base::Expected<std::vector<std::byte>> body = wire::Encode(message);
  if (!body.ok()) return std::move(body).error();
  return connection.Request(verb, *std::move(body), fds, timeout);
}

// Before what is answered with a descriptor: one that finds no number free is
// lost, and the connection with it.
base::Expected<void> HasRoomForDescriptor();

inline base::Expected<void> Done(const base::Expected<wire::Frame>& reply) {
  if (!reply.ok()) return reply.error();
  return {};
}

template <class Step>
auto SessionTarget::Ask(Step step, Suspect suspect)
    -> decltype(step(std::declval<Connection&>())) {
  const base::Nanoseconds deadline =
      clock_.Now() + kLoadTimeout + LongestRebuild();
  const Turn turn(*this, deadline);
  if (!turn.taken()) {
    return base::Error{base::Code::kDeadlineExceeded,
                       "another thread's call to rknnd has not ended in time"};
  }
  base::Nanoseconds refused_since = 0;
  Losses losses;
  for (;;) {
    base::Expected<std::shared_ptr<Connection>> connection =
        Connected(deadline);
    if (!connection.ok()) return std::move(connection).error();
    auto result = step(**connection);
    if (result.ok()) return result;
    // Cut off in the midst of an answer it has other names, too.
    if ((*connection)->broken()) {
      const base::Nanoseconds now = clock_.Now();
      // One that closes the session with a word means what was asked.
      losses.Add(suspect == Suspect::kYes || (*connection)->said_why(), now);
      if (losses.TooMany(now, options_.rebuild_bound)) {
        return losses.ToError(result.error().message);
      }
      Pause(losses.Pause());
    } else if (result.error().code != base::Code::kUnavailable ||
               !AwaitSuccessor(**connection, deadline, &refused_since)) {
      return result;
    }
  }
}

template <class Step>
base::Expected<void> SessionTarget::GiveBack(Step step) {
  const Turn turn(*this, clock_.Now() + kLoadTimeout + LongestRebuild());
  if (!turn.taken()) {
    return base::Error{base::Code::kDeadlineExceeded,
                       "another thread's call to rknnd has not ended in time"};
  }
  const std::shared_ptr<Connection> connection = Current();
  base::Expected<void> done = step(connection.get());
  // What the daemon held for us went with it.
  if (connection != nullptr && connection->broken()) return {};
  return done;
}

}  // namespace rknnd::client

#endif  // CLIENT_SESSION_REQUESTS_H_
