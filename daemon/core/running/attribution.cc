#include "daemon/core/running/attribution.h"

#include <bit>

#include "base/posix/hot_path.h"
#include "daemon/core/jobs/session_jobs.h"

namespace rknnd::core {
namespace {

RKNND_HOT_PATH JobRecord RecordOf(const Job& job) {
  const ContextTraits& traits = job.hold.context->traits();
  JobRecord record;
  record.submitted = job.submitted;
  record.frame = job.submission.frame;
  record.session = traits.session;
  record.pid = traits.pid;
  record.context = traits.number;
  record.model = traits.model_name;
  return record;
}

}  // namespace

RKNND_HOT_PATH void Attribution::Begun(const Job& job, base::Nanoseconds now) {
  JobRecord record = RecordOf(job);
  record.started = now;
  record.cores = job.granted;
  recorder_->Begin(job.core, record);
}

void Attribution::GivenUp(const Job& job, absl::StatusCode code,
                          base::Nanoseconds now) {
  JobRecord record = RecordOf(job);
  record.started = job.begun.load(std::memory_order_relaxed);
  record.cores = job.granted;
  record.answered = now;
  record.code = code;
  recorder_->Update(job.core, record);
}

RKNND_HOT_PATH void Attribution::Left(const Job& job,
                                      const driver::JobResult& result,
                                      base::Nanoseconds begun,
                                      base::Nanoseconds now,
                                      const JobCompletion& answer) {
  const base::Nanoseconds spent = (now - begun) * std::popcount(job.granted);
  RunContext& context = *job.hold.context;
  UseCounters& model = context.model()->use;
  job.hold.jobs->use().AddNpu(spent);
  context.use.AddNpu(spent);
  model.AddNpu(spent);

  JobRecord record = RecordOf(job);
  record.cores = job.granted;
  record.drops = answer.drops;
  // Refused before it came to the device, it had its cores all the same.
  record.started = result.started != 0 ? result.started : begun;
  record.ended = result.ended != 0 ? result.ended : now;
  // GivenUp may come late, when another job has the core.
  const JobRecord before = recorder_->LastOf(job.core);
  if (before.answered != 0 && SameJob(before, record)) {
    record.answered = before.answered;
    record.code = before.code;
  } else {
    record.answered = now;
    record.code = answer.status.code();
  }
  recorder_->Leave(job.core);
  recorder_->Add(record);
}

void Attribution::NotRun(const Job& job, absl::StatusCode code,
                         base::Nanoseconds now) {
  JobRecord record = RecordOf(job);
  record.answered = now;
  record.code = code;
  recorder_->Add(record);
  if (code != absl::StatusCode::kAborted) return;
  drops_.fetch_add(1, std::memory_order_relaxed);
  job.hold.jobs->use().CountDrop();
  job.hold.context->use.CountDrop();
  job.hold.context->model()->use.CountDrop();
}

}  // namespace rknnd::core
