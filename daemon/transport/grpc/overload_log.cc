#include "daemon/transport/grpc/overload_log.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace rknnd::transport {
namespace {

constexpr base::Nanoseconds kPerLine = base::kSecond;

}  // namespace

bool OverloadLog::Is(const absl::Status& status) {
  return absl::IsResourceExhausted(status) || absl::IsDeadlineExceeded(status);
}

void OverloadLog::Count(const std::string& who, const absl::Status& status) {
  failures_->Count(status);
  {
    base::MutexLock lock(mutex_);
    ++(absl::IsDeadlineExceeded(status) ? counts_.late : counts_.refused);
    counts_.last = absl::StrCat("'", who, "': ", std::string(status.message()));
    if (std::exchange(armed_, true)) return;
  }
  loop_->Post([this] { loop_->RunAfter(kPerLine, [this] { WriteLine(); }); });
}

void OverloadLog::WriteLine() {
  Counts counts;
  {
    base::MutexLock lock(mutex_);
    counts = std::exchange(counts_, {});
    armed_ = false;
  }
  core::EventFields fields;
  fields.event = core::Event::kRefused;
  failures_->Note(
      absl::StrCat("gRPC was asked for more than can be done: ", counts.refused,
                   " requests refused and ", counts.late,
                   " too late within a second; the last was of ", counts.last),
      fields);
}

}  // namespace rknnd::transport
