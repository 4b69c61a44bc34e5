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
#include "base/posix/rate_limit.h"
#include "base/values/printable.h"
#include "daemon/core/terms/events.h"
#include "daemon/core/terms/types.h"

namespace rknnd::transport {

enum class Severity { kError, kWarning, kInfo, kDebug };

// Thread: any.
class EventLog {
 public:
  virtual ~EventLog() = default;
  virtual void Write(Severity severity, const std::string& text) = 0;
  // The same, and what it is about.
  virtual void WriteEvent(Severity severity, const std::string& text,
                          const core::EventFields& /*fields*/) {
    Write(severity, text);
  }
};

// One line for each request that ends badly, but no more than a reader and a
// disk can take: what clients cause has a limit. What concerns the board (Note)
// has one of its own: no client that fails all the time hides a job that hangs.
// How many lines were left out is said with the next one. Thread: any.
class FailureLog {
 public:
  // Both outlive it.
  FailureLog(EventLog* log, const base::Clock* clock);

  // `what` names the request or the event, as in "CreateContext".
  void Write(const core::SessionPeer& peer, core::SessionId session,
             std::string_view what, const absl::Status& status);
  // One that others write of: it is in failures() only.
  void Count(const absl::Status& status);
  // Something of note that a client caused and that did not fail. Counts the
  // same.
  void Note(const std::string& text, const core::EventFields& fields = {},
            Severity severity = Severity::kWarning);

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

  enum Kind : uint8_t { kRequest, kNote, kKinds };
  struct Limit {
    base::RateLimit lines{kBurst, kPerLine};
    uint64_t left_out = 0;
  };

  void WriteLimited(Kind kind, Severity severity, std::string line,
                    const core::EventFields& fields) RKNND_EXCLUDES(mutex_);

  EventLog* const log_;
  const base::Clock* const clock_;
  mutable base::Mutex mutex_;
  std::array<Limit, kKinds> limits_ RKNND_GUARDED_BY(mutex_);
  Counts failures_ RKNND_GUARDED_BY(mutex_){};
};

// What clients chose goes through it before anybody sees it.
using base::Printable;

}  // namespace rknnd::transport

#endif  // DAEMON_TRANSPORT_SESSION_EVENT_LOG_H_
