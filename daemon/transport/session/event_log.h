// The daemon's own log, as the transports see it: rknnd writes to stderr, the
// daemon inside a host program (target `local:`) writes nowhere. A client's
// log is another matter: core::LogSink.

#ifndef DAEMON_TRANSPORT_SESSION_EVENT_LOG_H_
#define DAEMON_TRANSPORT_SESSION_EVENT_LOG_H_

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "base/posix/clock.h"
#include "base/posix/mutex.h"
#include "daemon/core/types.h"

namespace rknnd::transport {

enum class Severity { kError, kWarning, kInfo, kDebug };

// Thread: any.
class EventLog {
 public:
  virtual ~EventLog() = default;
  virtual void Write(Severity severity, const std::string& text) = 0;
};

// One line for each request that ends badly, but no more than a reader and a
// disk can take: what clients cause has a limit. Thread: any.
class FailureLog {
 public:
  // Both outlive it.
  FailureLog(EventLog* log, const base::Clock* clock)
      : log_(log), clock_(clock), refilled_(clock->Now()) {}

  // `what` names the request or the event, as in "CreateContext".
  void Write(const core::SessionPeer& peer, core::SessionId session,
             std::string_view what, const absl::Status& status);
  // Something of note that a client caused and that did not fail. Counts the
  // same.
  void Note(const std::string& text);

  // Requests and connections that failed since the start, by absl::StatusCode.
  using Counts = std::array<uint64_t, core::kStatusCodes>;
  [[nodiscard]] Counts failures() const {
    base::MutexLock lock(mutex_);
    return failures_;
  }

 private:
  // A burst tells what happens; after it a few lines a second.
  static constexpr uint32_t kBurst = 20;
  static constexpr base::Nanoseconds kPerLine = 200 * base::kMillisecond;

  void WriteLimited(std::string line) RKNND_EXCLUDES(mutex_);

  EventLog* const log_;
  const base::Clock* const clock_;
  mutable base::Mutex mutex_;
  base::Nanoseconds refilled_ RKNND_GUARDED_BY(mutex_);
  uint32_t tokens_ RKNND_GUARDED_BY(mutex_) = kBurst;
  uint64_t left_out_ RKNND_GUARDED_BY(mutex_) = 0;
  Counts failures_ RKNND_GUARDED_BY(mutex_){};
};

// Text of a client without what would break a line or steer a terminal.
std::string Printable(std::string_view text);

}  // namespace rknnd::transport

#endif  // DAEMON_TRANSPORT_SESSION_EVENT_LOG_H_
