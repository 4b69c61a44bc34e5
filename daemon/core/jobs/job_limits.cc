// What programs and their logs are told of runs that came too late. Called when
// that has happened: it may allocate.

#include "daemon/core/jobs/job_limits.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "daemon/core/jobs/job.h"

namespace rknnd::core {
namespace {

// Whole milliseconds where there are any: "5000 ms", "0.25 ms".
std::string Ms(base::Nanoseconds time) {
  if (time >= base::kMillisecond) {
    return absl::StrCat(time / base::kMillisecond, " ms");
  }
  return absl::StrCat(static_cast<double>(time) / base::kMillisecond, " ms");
}

std::string Frame(const Job& job) {
  return absl::StrCat("frame ", job.submission.frame, " of context ",
                      job.submission.context);
}

// What it waited for, and how long.
std::string Waited(const Job& job, base::Nanoseconds now) {
  return absl::StrCat("waited ", Ms(now - job.submitted), " for ",
                      job.waits_for_fence ? "its fence" : "its core");
}

// "has been on core 1 for 20 ms, after 30 ms in the queue".
std::string OnCore(const Job& job, base::Nanoseconds now) {
  const base::Nanoseconds begun = job.begun.load(std::memory_order_acquire);
  if (begun == 0) return "is about to begin";
  return absl::StrCat("has been on core ", job.core, " for ", Ms(now - begun),
                      ", after ", Ms(begun - job.submitted), " in the queue");
}

}  // namespace

absl::Status NotRunInTime(const Job& job, Breach breach,
                          base::Nanoseconds now) {
  const std::string waited = absl::StrCat(Frame(job), " ", Waited(job, now));
  switch (breach) {
    case Breach::kNone:
    case Breach::kTimeout:
      break;
    case Breach::kDeadline:
      return absl::DeadlineExceededError(
          absl::StrCat(waited, ", its deadline to begin was ",
                       Ms(job.submission.deadline), ": it was not run"));
    case Breach::kFence:
      return absl::DeadlineExceededError(absl::StrCat(
          waited, ", which was not signalled within ",
          Ms(job.limits.fence - job.submitted),
          " ('fence_timeout'; a timeout of the run counts instead)"));
    case Breach::kAge:
      return absl::AbortedError(
          absl::StrCat(Frame(job), " was dropped: it ", Waited(job, now),
                       ", its queue's maximum age is ",
                       Ms(job.limits.useful - job.submitted)));
  }
  return absl::DeadlineExceededError(absl::StrCat(waited, ", its timeout is ",
                                                  job.submission.timeout_ms,
                                                  " ms: it was not run"));
}

absl::Status NotEndedInTime(const Job& job, base::Nanoseconds now) {
  return absl::DeadlineExceededError(absl::StrCat(
      Frame(job), " ", OnCore(job, now), ", its timeout is ",
      job.submission.timeout_ms,
      " ms. The NPU may write to its outputs until the next run of the context "
      "has ended"));
}

absl::Status Hangs(const Job& job, base::Nanoseconds limit,
                   base::Nanoseconds now) {
  return absl::DeadlineExceededError(absl::StrCat(
      Frame(job), " hangs: it ", OnCore(job, now), ", ", Ms(limit),
      " are allowed ('hang' under [scheduler]). The NPU may write to its "
      "outputs until the next run of the context has ended"));
}

absl::Status DroppedFor(const Job& job, uint64_t newer) {
  return absl::AbortedError(absl::StrCat(Frame(job), " was dropped: frame ",
                                         newer, " came while it waited"));
}

absl::Status Cancelled(const Job& job) {
  return absl::CancelledError(
      absl::StrCat(Frame(job), " was cancelled while it waited"));
}

}  // namespace rknnd::core
