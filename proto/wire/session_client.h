// The client's end of the session socket: it says hello and checks the version
// in the answer, numbers requests, tells replies from what the daemon says
// unasked, and turns a reply that says no into its error. Used by librknnrt,
// rknnctl and rknnd-k8s. The first two wait here for replies; rknnd-k8s waits
// in its event loop and uses the parts that never block. Trusts the daemon with
// what it says, but never waits for it without a bound.
//
//   SayHello --> AwaitWelcome --> Request, Request, ...           (blocking)
//   NewHello --> TrySend --> Receive --> ReadWelcome --> ...      (event loop)

#ifndef PROTO_WIRE_SESSION_CLIENT_H_
#define PROTO_WIRE_SESSION_CLIENT_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/posix/clock.h"
#include "base/posix/unique_fd.h"
#include "base/values/expected.h"
#include "proto/wire/codec.h"
#include "proto/wire/frame.h"

namespace rknnd::wire {

// How a program introduces itself.
struct Introduction {
  std::string version;
  std::string program;
  uint64_t features = 0;   // of features.h
  uint32_t log_level = 0;  // of the log events that it wants to hear
};

// Thread: any, one at a time.
class SessionClient {
 public:
  enum class Waited { kReadable, kTimedOut, kCancelled };
  // Waits until a socket can be read, so many milliseconds. What waits
  // otherwise than poll() does may give up: requests then fail with kCancelled.
  using Wait = std::function<Waited(int fd, int milliseconds)>;
  static Waited Poll(int fd, int milliseconds);
  // Gets what the daemon says unasked, before the call that met it returns.
  using OnEvent = std::function<void(const Frame&)>;

  explicit SessionClient(base::UniqueFd socket, Wait wait = Poll)
      : socket_(std::move(socket)), wait_(std::move(wait)) {}

  [[nodiscard]] int socket() const { return socket_.get(); }
  void set_wait(Wait wait) { wait_ = std::move(wait); }
  void set_on_event(OnEvent on_event) { on_event_ = std::move(on_event); }

  // What the daemon answers to a hello, with its ring and doorbell.
  struct Greeting {
    Welcome welcome;
    std::vector<base::UniqueFd> fds;
  };
  // To a daemon that is being started and may not have accepted yet.
  base::Expected<void> SayHello(const Introduction& introduction,
                                base::Nanoseconds deadline);
  // kDeadlineExceeded: the answer has not come, and may be waited for again.
  base::Expected<Greeting> AwaitWelcome(base::Nanoseconds deadline);

  // Sends a request and waits for its reply. A reply that says no is its error.
  // kUnavailable: the daemon is gone, or said so. kDeadlineExceeded: the reply,
  // should it come later, is dropped.
  base::Expected<Frame> Request(Verb verb, std::vector<std::byte> body,
                                base::Nanoseconds timeout,
                                std::vector<base::UniqueFd> fds = {});
  // The daemon closed the connection after words of its own, during the last
  // request that was waited for.
  [[nodiscard]] bool said_why() const { return said_why_; }
  // The daemon is gone, or sent what is no frame: nothing more can be made of
  // this connection.
  [[nodiscard]] bool lost() const { return lost_; }

  // Waits until something has come, a reply or not.
  Waited AwaitReadable(base::Nanoseconds deadline);

  // ---- what never blocks ----

  // A request with the next number.
  Frame NewRequest(Verb verb, std::vector<std::byte> body,
                   std::vector<base::UniqueFd> fds = {});
  base::Expected<Frame> NewHello(const Introduction& introduction);
  // kResourceExhausted: there is no room for it now.
  base::Expected<void> TrySend(const Frame& request);
  // The next reply that has come, if any; events before it went to OnEvent.
  // kUnavailable: the daemon has closed the connection.
  base::Expected<std::optional<Frame>> Receive();
  // The answer to a hello; an error also for a daemon of another version.
  static base::Expected<Welcome> ReadWelcome(const Frame& reply);

 private:
  base::Expected<void> Send(const Frame& request, base::Nanoseconds deadline);
  base::Expected<Frame> AwaitReply(uint32_t request,
                                   base::Nanoseconds deadline);

  base::UniqueFd socket_;
  Wait wait_;
  OnEvent on_event_;
  uint32_t last_request_ = 0;
  uint32_t hello_ = 0;      // its number
  std::string last_words_;  // of log events, since the last request
  bool said_why_ = false;
  bool lost_ = false;
};

}  // namespace rknnd::wire

#endif  // PROTO_WIRE_SESSION_CLIENT_H_
