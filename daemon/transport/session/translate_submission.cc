// See the header. Allocates nothing for what is right: a worker calls it for
// each run.

#include "daemon/transport/session/translate_submission.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/posix/clock.h"
#include "base/posix/hot_path.h"

namespace rknnd::transport {
namespace {

// Beyond a year nobody waits; below it no sum of times overflows.
constexpr uint64_t kLongestDeadline = uint64_t{365} * 24 * 3600 * base::kSecond;

}  // namespace

RKNND_HOT_PATH absl::Status CheckSlot(const wire::Submission& entry) {
  if (entry.slot >= wire::kRingEntries) {
    return absl::FailedPreconditionError(absl::StrCat(
        "ring: slot '", entry.slot, "' is not below ", wire::kRingEntries));
  }
  if (entry.sequence == 0) {
    return absl::FailedPreconditionError("ring: an entry without a sequence");
  }
  return absl::OkStatus();
}

RKNND_HOT_PATH absl::StatusOr<core::JobSubmission> ToJob(
    const wire::Submission& entry) {
  if ((entry.flags & ~wire::kSubmitFlags) != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("ring: flags '", entry.flags, "' are not defined"));
  }
  if (entry.reserved != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("ring: 'reserved' is ", entry.reserved, ", not 0"));
  }
  core::JobSubmission job;
  switch (entry.operation) {
    case static_cast<uint32_t>(wire::RingOperation::kRun):
      break;
    case static_cast<uint32_t>(wire::RingOperation::kCancel):
      job.operation = core::JobSubmission::Operation::kCancel;
      break;
    default:
      return absl::UnimplementedError(absl::StrCat(
          "ring: operation '", entry.operation, "' is unknown to this daemon"));
  }
  job.context = entry.context;
  job.slot = entry.slot;
  job.sequence = entry.sequence;
  job.frame = entry.frame;
  job.timeout_ms = entry.timeout_ms;
  job.deadline = static_cast<base::Nanoseconds>(
      std::min<uint64_t>(entry.deadline_ns, kLongestDeadline));
  job.set = entry.set;
  job.fence_in = entry.fence_in;
  job.fence_out = entry.fence_out;
  job.notify = entry.notify;
  job.shared = (entry.flags & wire::kSubmitShared) != 0;
  return job;
}

}  // namespace rknnd::transport
