// See the header.

#include "daemon/process/watchdog.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/core/terms/events.h"

namespace rknnd {

Watchdog::Watchdog(Parts parts) : parts_(std::move(parts)) { Turn(); }

Watchdog::~Watchdog() { parts_.loop->CancelTimer(timer_); }

void Watchdog::Turn() {
  timer_ = parts_.loop->RunAfter(parts_.period, [this] { Turn(); });
  const std::string standing = parts_.progress->Check();
  if (standing.empty()) {
    parts_.notify("WATCHDOG=1");
    if (!std::exchange(stalled_, false)) return;
    parts_.log->Write(transport::Severity::kWarning,
                      "all that stood still has moved on: the watchdog is fed "
                      "again");
    parts_.notify(absl::StrCat("STATUS=", parts_.status));
    return;
  }
  if (std::exchange(stalled_, true)) return;
  core::EventFields fields;
  fields.event = core::Event::kStalled;
  const std::string line = absl::StrCat(
      standing,
      ": the watchdog is not fed, the service manager restarts rknnd");
  parts_.log->WriteEvent(transport::Severity::kError, line, fields);
  parts_.notify(absl::StrCat("STATUS=", line));
}

}  // namespace rknnd
