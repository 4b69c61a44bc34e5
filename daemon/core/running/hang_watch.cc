// See the header.

#include "daemon/core/running/hang_watch.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/posix/hot_path.h"
#include "base/values/sha256.h"
#include "daemon/core/jobs/session_jobs.h"
#include "daemon/core/scheduling/admission.h"

namespace rknnd::core {

std::string Describe(const HangReport& report) {
  const std::string job =
      absl::StrCat("frame ", report.frame, " of context ", report.context,
                   " of ", report.holder, ", model '", report.model, "', ");
  const std::string cores = NameCores(report.cores);
  if (report.ended) {
    return absl::StrCat(job, "has ended after all, after ",
                        report.ran / base::kMillisecond, " ms: ", cores,
                        " can be used again");
  }
  return absl::StrCat(
      job, "did not finish on ", cores, " within ",
      report.limit / base::kMillisecond,
      " ms ('hang' under [scheduler]) and was answered with a timeout. Nothing "
      "else runs there until the NPU gives it back (rknnctl status). If it "
      "repeats: lower the load on DDR, check the clock, update the NPU's "
      "driver");
}

HangReport HangWatch::ReportOf(const Job& job, base::Nanoseconds limit,
                               base::Nanoseconds now) {
  HangReport report;
  report.holder = job.hold.jobs->holder();
  report.model = job.hold.context->model()->name;
  report.model_hash = base::ToHex(job.hold.context->model()->id);
  report.session = job.hold.context->traits().session;
  report.context = job.submission.context;
  report.frame = job.submission.frame;
  report.core = job.core;
  report.cores = job.granted;
  report.limit = limit;
  report.ran = now - job.begun.load(std::memory_order_relaxed);
  return report;
}

EventFields FieldsOf(const HangReport& report) {
  EventFields fields;
  fields.event = report.ended ? Event::kHangOver : Event::kHang;
  fields.session = report.session;
  fields.model = report.model_hash;
  fields.job = absl::StrCat(report.context, "/", report.frame);
  fields.cores = report.cores;
  return fields;
}

RKNND_HOT_PATH void HangWatch::Begin(Job* job, base::Nanoseconds now) {
  job->begun.store(now, std::memory_order_release);
  Core& core = cores_[job->core];
  {
    base::MutexLock lock(core.mutex);
    core.job = job;
    core.found = false;
  }
  // A look that did not see this job has cleared the flag before it looked, and
  // so before this; one that sees it sets the time itself.
  if (watching_.load()) return;
  if (watching_.exchange(true)) return;
  if (expiry_->WatchAt(After(now, limit_))) expiry_->Arm();
}

RKNND_HOT_PATH bool HangWatch::End(Job* job) {
  Core& core = cores_[job->core];
  base::MutexLock lock(core.mutex);
  core.job = nullptr;
  return std::exchange(core.found, false);
}

std::vector<HangWatch::Hanging> HangWatch::Look(base::Nanoseconds now) {
  std::vector<Hanging> hanging;
  watching_.store(false);
  base::Nanoseconds next = kNever;
  for (Core& core : cores_) {
    base::MutexLock lock(core.mutex);
    if (core.job == nullptr || core.found) continue;
    const Job& job = *core.job;
    const base::Nanoseconds due =
        After(job.begun.load(std::memory_order_relaxed),
              HangLimit(limit_, job.expected));
    if (due > now) {
      next = std::min(next, due);
      continue;
    }
    core.found = true;
    found_.fetch_add(1, std::memory_order_relaxed);
    hanging.push_back({{job.hold.jobs, job.submission.slot, job.serial},
                       ReportOf(job, HangLimit(limit_, job.expected), now)});
  }
  if (next != kNever) {
    watching_.store(true);
    if (expiry_->WatchAt(next)) expiry_->Arm();
  }
  return hanging;
}

uint32_t HangWatch::hanging() {
  uint32_t hanging = 0;
  for (Core& core : cores_) {
    base::MutexLock lock(core.mutex);
    if (core.found) {
      hanging += static_cast<uint32_t>(std::popcount(core.job->granted));
    }
  }
  return hanging;
}

}  // namespace rknnd::core
