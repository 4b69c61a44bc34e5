// One connection to a daemon: the session socket after Hello and Welcome, with
// its ring. It knows requests and replies, and nothing of what they mean; when
// it breaks it stays broken, and its owner makes another (link.h), to which the
// session is told anew (record.h).

#ifndef CLIENT_SESSION_CONNECTION_H_
#define CLIENT_SESSION_CONNECTION_H_

#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/posix/clock.h"
#include "base/posix/mapping.h"
#include "base/posix/unique_fd.h"
#include "base/values/expected.h"
#include "client/session/ring_client.h"
#include "proto/wire/codec.h"
#include "proto/wire/frame.h"
#include "proto/wire/session_client.h"

namespace rknnd::client {

// Loading a model compiles it, which takes seconds on a small board.
inline constexpr base::Nanoseconds kLoadTimeout = 300 * base::kSecond;

// Other requests are short, but wait behind the loading of other
// clients' models.
inline constexpr base::Nanoseconds kRequestTimeout = 60 * base::kSecond;

// Thread: Request, said_why, ReadEvents and Break one at a time; all else any.
class Connection {
 public:
  // A daemon that does not read its ring for so long reads no release either.
  static constexpr base::Nanoseconds kNotifyPatience = base::kSecond;

  // Waits for the answer of a daemon to whom hello was said (Introduction).
  // kDeadlineExceeded: it has not come, and may be waited for again; else
  // `client` is taken, or of no use any more.
  static wire::Introduction Introduction();
  static base::Expected<std::shared_ptr<Connection>> AwaitWelcome(
      std::optional<wire::SessionClient>& client, base::Nanoseconds deadline);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  [[nodiscard]] const wire::Welcome& welcome() const { return welcome_; }
  [[nodiscard]] RingClient& ring() { return ring_; }

  // Settles, sends a request with the borrowed `fds` and waits for its reply;
  // events that come before it are handled. A reply that says no is its error;
  // so is a connection that broke, which broken() tells apart.
  base::Expected<wire::Frame> Request(wire::Verb verb,
                                      std::vector<std::byte> body,
                                      std::span<const int> fds,
                                      base::Nanoseconds timeout);

  // Waits until the daemon has taken all entries that are in the ring now, or
  // is gone: what is sent afterwards does not overtake them.
  base::Expected<void> Settle(base::Nanoseconds deadline);

  // Sends a request, settled, whose reply nobody waits for; false when it was
  // not sent.
  bool Notify(wire::Verb verb, std::vector<std::byte> body,
              base::Nanoseconds patience = kNotifyPatience);

  // Handles events that have arrived. Never blocks.
  void ReadEvents();

  // Looks at the socket: whether the daemon is still there, and whether
  // something waits to be read.
  struct Health {
    bool alive = true;
    bool readable = false;
  };
  Health Look();
  // To its owner it is as if the daemon had died, and to the daemon as if the
  // program had.
  void Break();
  // The daemon is gone: whether the job may be why, as it was on a core. An
  // older daemon does not say so of any; each may be then.
  [[nodiscard]] bool MayBeOf(const Ticket& job) const;
  // Waits until the daemon is gone or `timeout` is over.
  void AwaitEnd(base::Nanoseconds timeout);

  // It broke in the midst of a request, after words of the daemon's.
  [[nodiscard]] bool said_why() const { return client_.said_why(); }
  // No further use of this connection is possible.
  [[nodiscard]] bool broken() const {
    return broken_.load(std::memory_order_acquire);
  }

 private:
  Connection(wire::SessionClient client, base::UniqueFd doorbell,
             base::Mapping mapping, const wire::Welcome& welcome);

  wire::SessionClient client_;
  const base::UniqueFd doorbell_;
  const base::Mapping mapping_;
  const wire::Welcome welcome_;
  RingClient ring_;
  std::atomic<bool> broken_{false};
};

}  // namespace rknnd::client

#endif  // CLIENT_SESSION_CONNECTION_H_
