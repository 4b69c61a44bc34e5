// Called by connections on the loop and by gRPC's threads, with words that
// clients chose.

#include "daemon/transport/session/event_log.h"

#include <cctype>

#include "absl/strings/str_cat.h"

namespace rknnd::transport {

FailureLog::FailureLog(EventLog* log, const base::Clock* clock)
    : log_(log), clock_(clock) {}

void FailureLog::Write(const core::SessionPeer& peer, core::SessionId session,
                       std::string_view what, const absl::Status& status) {
  Count(status);
  // Of another machine its pid and uid say nothing.
  std::string who = peer.address.empty()
                        ? absl::StrCat("pid ", peer.pid, " uid ", peer.uid)
                        : absl::StrCat("peer ", Printable(peer.address));
  // Calls that stand alone have neither.
  if (!peer.comm.empty()) {
    absl::StrAppend(&who, " '", Printable(peer.comm), "'");
  }
  if (session != 0) absl::StrAppend(&who, " session ", session);
  core::EventFields fields = core::FieldsOf(session, peer);
  if (absl::IsResourceExhausted(status)) fields.event = core::Event::kRefused;
  WriteLimited(kRequest, Severity::kWarning,
               absl::StrCat(std::string(what), " failed: ", who, ": ",
                            absl::StatusCodeToString(status.code()), ": ",
                            Printable(std::string(status.message()))),
               fields);
}

void FailureLog::Count(const absl::Status& status) {
  base::MutexLock lock(mutex_);
  ++failures_[static_cast<size_t>(status.code()) % failures_.size()];
}

void FailureLog::Note(const std::string& text, const core::EventFields& fields,
                      Severity severity) {
  WriteLimited(kNote, severity, Printable(text), fields);
}

void FailureLog::WriteLimited(Kind kind, Severity severity, std::string line,
                              const core::EventFields& fields) {
  if (log_ == nullptr) return;
  {
    base::MutexLock lock(mutex_);
    Limit& limit = limits_[kind];
    if (limit.lines.Take(clock_->Now()) > 0) {
      ++limit.left_out;
      return;
    }
    if (limit.left_out > 0) {
      absl::StrAppend(&line, " (", limit.left_out,
                      " such lines left out before)");
      limit.left_out = 0;
    }
  }
  log_->WriteEvent(severity, line, fields);
}

}  // namespace rknnd::transport
