// rknnctl's line to a daemon: says hello over the session socket and asks for
// reports. Used by the verbs that look at a daemon; runs no models (those go
// through the C API, as every program's do). Trusts the daemon with what it
// says but waits for it with a bound, and no longer than the user does.

#ifndef CLIENT_CTL_CONTROL_CONNECTION_H_
#define CLIENT_CTL_CONTROL_CONNECTION_H_

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/posix/expected.h"
#include "base/posix/unique_fd.h"
#include "proto/wire/codec.h"
#include "proto/wire/frame.h"

namespace rknnd::client {

// Thread: any, one at a time.
class ControlConnection {
 public:
  enum class Waited { kReadable, kTimedOut, kCancelled };
  // Waits for a socket, so many milliseconds. What waits for it otherwise than
  // poll() does may give up: requests then fail with kCancelled.
  using Wait = std::function<Waited(int fd, int milliseconds)>;
  static Waited Poll(int fd, int milliseconds);

  // `target` as in RKNND_TARGET; "" is the default. Only unix: has a daemon
  // that answers here.
  static base::Expected<ControlConnection> Open(const std::string& target,
                                                Wait wait = Poll);

  // The same over admin.sock, which lies beside the session socket: for verbs
  // that change things.
  static base::Expected<ControlConnection> OpenAdmin(const std::string& target);

  base::Expected<wire::Report> Ask(rknnd_v1_ReportKind kind);

  // The jobs of late as a trace, in a memfd; without those that ended before
  // `since_ns` (CLOCK_MONOTONIC).
  struct TakenTrace {
    wire::Trace message;
    base::UniqueFd text;
  };
  base::Expected<TakenTrace> TakeTrace(uint64_t since_ns);

  // Faults on demand; need admin.sock.
  base::Expected<wire::FaultReport> SetFault(const wire::Fault& fault);
  base::Expected<wire::FaultList> ListFaults();
  base::Expected<void> ClearFault(uint64_t id);  // 0: all
  // No job of the daemon's is begun on these cores as long as this connection
  // lasts; waits, however long it takes, until those that run there have ended.
  // Needs admin.sock.
  base::Expected<void> Lease(uint32_t cores, const std::string& command);
  // To be polled; what can be read is for DropEvents.
  [[nodiscard]] int socket() const { return socket_.get(); }
  // Reads what the daemon said unasked. False when it has gone.
  bool DropEvents();
  // Replaces the way to wait.
  void set_wait(Wait wait) { wait_ = std::move(wait); }

  // The daemon's number of this very connection, which its reports count too.
  [[nodiscard]] uint64_t session() const { return session_; }

 private:
  ControlConnection(base::UniqueFd socket, Wait wait)
      : wait_(std::move(wait)), socket_(std::move(socket)) {}

  static base::Expected<ControlConnection> OpenAt(const std::string& path,
                                                  Wait wait);
  base::Expected<void> Greet();
  // Encodes, asks and decodes.
  template <class Answer, class Message>
  base::Expected<Answer> CallWith(wire::Verb verb, const Message& message);
  // Sends a request and waits for its reply; the whole of it, or its body.
  base::Expected<wire::Frame> CallForFrame(
      wire::Verb verb, std::vector<std::byte> body,
      int64_t timeout_ms = kReplyTimeoutMs);
  base::Expected<std::vector<std::byte>> Call(wire::Verb verb,
                                              std::vector<std::byte> body);
  base::Expected<wire::Frame> NextFrame(int64_t deadline_ms);

  // A report of a full board takes milliseconds; a daemon that is silent for
  // so long is not going to answer.
  static constexpr int64_t kReplyTimeoutMs = 10'000;

  Wait wait_;
  base::UniqueFd socket_;
  uint32_t last_request_ = 0;
  uint64_t session_ = 0;
};

}  // namespace rknnd::client

#endif  // CLIENT_CTL_CONTROL_CONNECTION_H_
