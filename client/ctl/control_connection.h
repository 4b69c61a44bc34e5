// rknnctl's connection to a daemon: which socket a target names, and what the
// verbs ask for there. Used by the verbs that look at a daemon; runs no models
// (those go through the C API, as every program's do). Waits for the daemon
// with a bound, and no longer than the user does.

#ifndef CLIENT_CTL_CONTROL_CONNECTION_H_
#define CLIENT_CTL_CONTROL_CONNECTION_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/posix/clock.h"
#include "base/posix/unique_fd.h"
#include "base/values/expected.h"
#include "proto/wire/codec.h"
#include "proto/wire/frame.h"
#include "proto/wire/session_client.h"

namespace rknnd::client {

inline constexpr char kDefaultTarget[] = "unix:/run/rknnd/session.sock";

// Thread: any, one at a time.
class ControlConnection {
 public:
  using Waited = wire::SessionClient::Waited;
  using Wait = wire::SessionClient::Wait;

  // How far a transfer to another machine is; on a thread of its own, until the
  // connection ends.
  using OnProgress =
      std::function<void(const char* what, uint64_t done, uint64_t total)>;

  // `target` as in RKNND_TARGET; "" is the default. local: has no daemon that
  // answers here.
  static base::Expected<ControlConnection> Open(
      const std::string& target, Wait wait = wire::SessionClient::Poll,
      OnProgress on_progress = {});

  // The same over admin.sock, which lies beside the session socket, or as
  // whoever one is at a remote daemon: for verbs that change things.
  static base::Expected<ControlConnection> OpenAdmin(const std::string& target);

  // What the daemon said about itself.
  [[nodiscard]] const wire::Welcome& welcome() const { return welcome_; }

  base::Expected<wire::Report> Ask(rknnd_v1_ReportKind kind);
  // What the kernel tells of the NPU now; empty: nothing, or the daemon does
  // not say.
  std::string AskNpu();

  // A report of a full board takes milliseconds; a daemon that is silent for
  // so long is not going to answer.
  static constexpr int64_t kReplyTimeoutMs = 10'000;

  // Encodes `message`, sends it with the borrowed `fds`, decodes the reply.
  template <class Answer, class Message>
  base::Expected<Answer> Request(wire::Verb verb, const Message& message,
                                 int64_t timeout_ms = kReplyTimeoutMs,
                                 std::vector<base::UniqueFd> fds = {}) {
    base::Expected<wire::Frame> reply =
        RequestFrame(verb, message, timeout_ms, std::move(fds));
    if (!reply) return std::move(reply).error();
    return wire::Decode<Answer>(reply->body);
  }

  // Lines of the daemon's log come from here on as it writes them, to
  // NextLogLine; those that it remembers (`recent`) have come when this
  // returns.
  base::Expected<void> FollowLogs(uint32_t level, uint32_t recent);
  // The next line, for which it waits so long; nothing when none has come.
  base::Expected<std::optional<wire::LogLine>> NextLogLine(int64_t timeout_ms);

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
  [[nodiscard]] int socket() const { return client_->socket(); }
  // Reads what the daemon said unasked. False when it has gone.
  bool DropEvents();
  // Replaces the way to wait.
  void set_wait(Wait wait) { client_->set_wait(std::move(wait)); }

  // The daemon's number of this very connection, which its reports count too.
  [[nodiscard]] uint64_t session() const { return welcome_.session; }

 private:
  ControlConnection(base::UniqueFd socket, Wait wait);

  static base::Expected<ControlConnection> OpenAt(const std::string& path,
                                                  Wait wait);
  static base::Expected<ControlConnection> OpenRemote(
      const std::string& address, Wait wait, OnProgress on_progress);
  base::Expected<void> Greet();
  // As Request, but the whole reply, with its descriptors.
  template <class Message>
  base::Expected<wire::Frame> RequestFrame(
      wire::Verb verb, const Message& message,
      int64_t timeout_ms = kReplyTimeoutMs,
      std::vector<base::UniqueFd> fds = {}) {
    base::Expected<std::vector<std::byte>> body = wire::Encode(message);
    if (!body) return std::move(body).error();
    return client_->Request(verb, *std::move(body),
                            timeout_ms * base::kMillisecond, std::move(fds));
  }

  // Lines of the daemon's log that NextLogLine has not given yet.
  using Lines = std::deque<wire::LogLine>;

  std::shared_ptr<void> silencer_;  // of on_progress, when this goes
  wire::Welcome welcome_{};
  std::unique_ptr<Lines> lines_;  // where the client's events go
  std::unique_ptr<wire::SessionClient> client_;
};

}  // namespace rknnd::client

#endif  // CLIENT_CTL_CONTROL_CONNECTION_H_
