// Called by connections on the loop and by gRPC's threads, with words that
// clients chose.

#include "daemon/transport/session/event_log.h"

#include <algorithm>
#include <cctype>

#include "absl/strings/str_cat.h"

namespace rknnd::transport {

std::string Printable(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7F) c = '?';
  }
  return result;
}

void FailureLog::Write(const core::SessionPeer& peer, core::SessionId session,
                       std::string_view what, const absl::Status& status) {
  {
    base::MutexLock lock(mutex_);
    ++failures_[static_cast<size_t>(status.code()) % failures_.size()];
  }
  // Of another machine its pid and uid say nothing.
  std::string who = peer.address.empty()
                        ? absl::StrCat("pid ", peer.pid, " uid ", peer.uid)
                        : absl::StrCat("peer ", Printable(peer.address));
  // Calls that stand alone have neither.
  if (!peer.comm.empty()) {
    absl::StrAppend(&who, " '", Printable(peer.comm), "'");
  }
  if (session != 0) absl::StrAppend(&who, " session ", session);
  WriteLimited(absl::StrCat(std::string(what), " failed: ", who, ": ",
                            absl::StatusCodeToString(status.code()), ": ",
                            Printable(std::string(status.message()))));
}

void FailureLog::Note(const std::string& text) {
  WriteLimited(Printable(text));
}

void FailureLog::WriteLimited(std::string line) {
  if (log_ == nullptr) return;
  {
    base::MutexLock lock(mutex_);
    const base::Nanoseconds now = clock_->Now();
    const auto refill = static_cast<uint64_t>((now - refilled_) / kPerLine);
    if (refill > 0) {
      tokens_ = static_cast<uint32_t>(std::min<uint64_t>(
          kBurst, tokens_ + std::min<uint64_t>(refill, kBurst)));
      refilled_ = now;
    }
    if (tokens_ == 0) {
      ++left_out_;
      return;
    }
    --tokens_;
    if (left_out_ > 0) {
      absl::StrAppend(&line, " (", left_out_, " such lines left out before)");
      left_out_ = 0;
    }
  }
  log_->Write(Severity::kWarning, line);
}

}  // namespace rknnd::transport
