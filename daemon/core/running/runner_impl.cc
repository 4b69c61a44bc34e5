// From token to completion. Called by workers, and by a device's own threads
// when a job that it ran elsewhere is over. Jobs were checked by a gate.
//
// The order at a job's end: the slot is freed, the completion posted (the
// client may submit again from here), the token given back. What the job left
// in internal memory: isolation.h.

#include "daemon/core/running/runner_impl.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/posix/hot_path.h"
#include "daemon/core/running/late_wakes.h"
#include "daemon/core/running/worker_pulse.h"

namespace rknnd::core {
namespace {

// The job this thread is handing to the device: when it ends meanwhile, on this
// thread, RunReady goes on by itself and nobody needs waking.
thread_local const Job* starting_job = nullptr;

}  // namespace

RKNND_HOT_PATH void RunnerImpl::CoreTime::Begin(base::Nanoseconds now) {
  busy.store(~(now - busy.load(std::memory_order_relaxed)),
             std::memory_order_relaxed);
}

RKNND_HOT_PATH void RunnerImpl::CoreTime::End(base::Nanoseconds now) {
  busy.store(now - ~busy.load(std::memory_order_relaxed),
             std::memory_order_relaxed);
  jobs.fetch_add(1, std::memory_order_relaxed);
}

base::Nanoseconds RunnerImpl::CoreTime::Until(const base::Clock& clock) const {
  const base::Nanoseconds word = busy.load(std::memory_order_relaxed);
  return word >= 0 ? word : clock.Now() - ~word;
}

RunnerImpl::RunnerImpl(Parts parts)
    : parts_(std::move(parts)),
      isolation_(parts_.isolate, parts_.arenas, parts_.waker),
      fence_waits_(parts_.fences, parts_.scheduler.get()),
      expiry_(parts_.waker),
      hang_watch_(parts_.hang, &expiry_),
      policies_({.clock = parts_.clock,
                 .waker = parts_.waker,
                 .scheduler = parts_.scheduler.get(),
                 .shared_runs = parts_.shared_runs.get(),
                 .fence_waits = &fence_waits_,
                 .expiry = &expiry_,
                 .attribution = &attribution_,
                 .leased = &leased_,
                 .fence_timeout = parts_.fence_timeout,
                 .jobs_per_context = parts_.jobs_per_context}),
      ends_(policies_, parts_.idle) {}

void RunnerImpl::EnterWorker() { parts_.device->EnterWorker(); }

RKNND_HOT_PATH void RunnerImpl::RunReady() {
  for (bool begun = false;; begun = true) {
    const Scheduler::Turn turn = parts_.scheduler->TakeNext();
    if (turn.job == nullptr) {
      // Whoever has just run something may be given more at once.
      if (!begun) isolation_.ClearIdle();
      return;
    }
    turns_.fetch_add(1, std::memory_order_relaxed);
    if (turn.more) parts_.waker->WakeOne();
    Start(turn.job);
  }
}

void RunnerImpl::Expire() {
  expiry_.BeginExpiring();
  const base::Nanoseconds now = parts_.clock->Now();
  while (const std::optional<Expiry::Due> due = expiry_.TakeDue(now)) {
    ends_.Expire(*due, now);
  }
  for (const HangWatch::Hanging& hanging : hang_watch_.Look(now)) {
    ends_.GiveUpHanging(hanging.job, parts_.hang, now);
    if (parts_.hung != nullptr) parts_.hung(hanging.report);
  }
  expiry_.Arm();
}

Runner::Progress RunnerImpl::progress() {
  Progress progress;
  progress.can_begin = parts_.scheduler->CanBegin();
  progress.turns = turns_.load(std::memory_order_relaxed);
  progress.next_expiry = expiry_.next();
  progress.expires = progress.next_expiry != kNever;
  return progress;
}

void RunnerImpl::FenceReady(uint64_t token, FenceState state) {
  if (state == FenceState::kClosed) {
    ends_.FailWaiting(token, absl::OkStatus());
  } else {
    fence_waits_.Release(token);
  }
}

RKNND_HOT_PATH void RunnerImpl::Start(Job* job) {
  const base::Nanoseconds now = parts_.clock->Now();
  if (const Breach breach = job->limits.WhileWaiting(now, /*for_fence=*/false);
      breach != Breach::kNone) {
    // The alarm comes a moment later, if at all.
    const std::shared_ptr<SessionJobs> jobs = job->hold.jobs;
    const std::shared_ptr<RunContext> context = job->hold.context;
    const uint32_t granted = job->granted;
    ends_.Settle(job, NotRunInTime(*job, breach, now));
    // Whether somebody can run now, RunReady sees.
    parts_.scheduler->Release(*context, granted, /*used=*/0);
    if ((awaited_.load() & granted) != 0) parts_.freed();
    ends_.NoticeIdle();
    return;
  }
  if (job->submission.shared) [[unlikely]] {
    if (!BeginShared(job)) return;
  }
  running_.fetch_add(1, std::memory_order_relaxed);
  ForEachCore(job->granted, [now](CoreTime& time) { time.Begin(now); });
  // Who gives the job up from here on adds to this record.
  attribution_.Begun(*job, now);
  hang_watch_.Begin(job, now);
  if (absl::Status refused = Prepare(job); !refused.ok()) {
    End(job, {std::move(refused), 0, 0}, /*in_run_ready=*/true);
    return;
  }
  job->hold.jobs->TellBegun(job->submission);
  WakeBeforeLongWork();
  isolation_.Begin(*job);
  starting_job = job;
  {
    const InDevice device;
    parts_.device->Submit(job->request);
  }
  starting_job = nullptr;
}

bool RunnerImpl::BeginShared(Job* job) {
  // Whether somebody can run now, RunReady sees.
  const uint32_t granted = job->granted;
  switch (parts_.shared_runs->Begin(job)) {
    case SharedRuns::Verdict::kRun:
      return true;
    case SharedRuns::Verdict::kWait:
      break;
    case SharedRuns::Verdict::kAnswer:
      AnswerShared(job);
      break;
  }
  if ((awaited_.load() & granted) != 0) parts_.freed();
  return false;
}

bool RunnerImpl::AnswerShared(Job* job) {
  JobCompletion answer = AnswerTo(job->submission);
  parts_.shared_runs->Answer(job, &answer);
  const uint32_t granted = job->granted;
  JobHold hold;
  if (ends_.Retire(job, &hold)) {
    if (answer.status.ok()) {
      hold.context->use.CountJob(answer.queue, 0);
      hold.context->use.CountShared();
      hold.context->model()->use.CountJob(answer.queue, 0);
      hold.context->model()->use.CountShared();
      hold.jobs->use().CountShared();
      attribution_.CountShared();
    }
    answer.drops = hold.context->TakeDrops();
    ends_.Answer(*hold.jobs, answer, hold.fences);
  }
  const bool runnable =
      parts_.scheduler->Release(*hold.context, granted, /*used=*/0);
  ends_.NoticeIdle();
  return runnable;
}

bool RunnerImpl::AnswerOthers(Job* jobs) {
  bool runnable = false;
  Job* next = nullptr;
  for (Job* job = jobs; job != nullptr; job = next) {
    next = job->next;
    runnable = AnswerShared(job) || runnable;
  }
  return runnable;
}

RKNND_HOT_PATH absl::Status RunnerImpl::Prepare(Job* job) {
  const JobSubmission& submission = job->submission;
  RunContext& context = *job->hold.context;
  const uint32_t row = job->hold.bindings->row();
  const driver::ProgramInfo& program = context.model()->program(row);
  driver::JobRequest& request = job->request;
  request = {};
  if (context.traits().internal_outside) {
    const OutsideMemory& internal = job->hold.bindings->internal();
    if (internal.buffer != nullptr) {
      request.internal = internal.buffer->memory();
      request.internal_offset = internal.range.begin;
    }
  } else if (program.internal_size != 0) {
    job->hold.arena = context.own_arena() != nullptr
                          ? context.own_arena()
                          : parts_.arenas->Get(job->core);
    // Arenas shrink only when no context needs them any more.
    if (job->hold.arena == nullptr ||
        job->hold.arena->size() < program.internal_size) {
      return absl::CancelledError(
          absl::StrCat("context ", submission.context,
                       " has no internal memory any more: it was destroyed"));
    }
    request.internal = job->hold.arena->memory();
    if (program.batch > 1 && context.own_arena() == nullptr) {
      LendArenas(job, program.internal_size);
    }
  }
  request.model = context.model()->model.get();
  request.program = row;
  request.segment_count = program.segments;
  request.core = job->core;
  request.core_mask = job->granted;
  request.inputs = job->hold.bindings->inputs();
  request.outputs = job->hold.shared == nullptr ? job->hold.bindings->outputs()
                                                : job->hold.shared->outputs();
  request.layer_times = context.running_times(row);
  job->hold.dump = context.StartDump();
  if (job->hold.dump != nullptr) job->hold.dump->set_row(row);
  request.layer_sink = job->hold.dump.get();
  if (!job->cores.gang) {
    // A batch that was given further cores: those that compute slices, with an
    // arena each. A run that is dumped takes slice after slice.
    if (request.layer_sink != nullptr) request.gang_internal = {};
    request.core_mask = uint32_t{1} << job->core;
    uint32_t further = job->granted & ~request.core_mask;
    for (size_t i = 0; i < request.gang_internal.size(); ++i) {
      request.core_mask |= further & -further;
      further &= further - 1;
    }
  }
  request.keep_input_caches = context.traits().keep_input_caches;
  request.keep_output_caches = context.traits().keep_output_caches;
  request.submitted = job->submitted;
  request.stop = &job->unwanted;
  request.listener = job;
  return absl::OkStatus();
}

void RunnerImpl::LendArenas(Job* job, uint64_t size) {
  size_t count = 0;
  for (uint32_t core = job->core + 1; core < 32 && count < kGangArenas;
       ++core) {
    if ((job->granted >> core & 1) == 0) continue;
    std::shared_ptr<Arena> arena = parts_.arenas->Get(core);
    // Its arena grows in a moment; until then fewer cores do the work.
    if (arena == nullptr || arena->size() < size) break;
    job->gang_internal[count] = arena->memory();
    job->hold.gang_arenas[count] = std::move(arena);
    ++count;
  }
  job->request.gang_internal = std::span(job->gang_internal).first(count);
}

RKNND_HOT_PATH void RunnerImpl::Finish(Job* job,
                                       const driver::JobResult& result) {
  if (result.ended - result.started >= base::kColdAfter) base::FetchHotPath();
  End(job, result, starting_job == job);
}

RKNND_HOT_PATH void RunnerImpl::End(Job* job, const driver::JobResult& result,
                                    bool in_run_ready) {
  JobCompletion answer = AnswerTo(job->submission);
  answer.core = job->core;
  // An innocent one that the driver took along when it reset the NPU. Its
  // client runs it again; ABORTED is what a dropped frame is answered with.
  answer.status = absl::IsAborted(result.status)
                      ? absl::UnavailableError(result.status.message())
                      : result.status;
  SharedRuns::Ending shared;
  if (job->hold.shared != nullptr) [[unlikely]] {
    shared = parts_.shared_runs->End(job, result);
    if (result.status.ok()) answer.status = shared.status;
  }
  const base::Nanoseconds now = parts_.clock->Now();
  const bool started = result.started != 0;
  answer.queue = (started ? result.started : now) - job->submitted;
  answer.run = std::max<base::Nanoseconds>(result.ended - result.started, 0);
  answer.total = now - job->submitted;
  answer.drops = job->hold.context->new_drops();

  const uint32_t granted = job->granted;
  ForEachCore(granted, [now](CoreTime& time) { time.End(now); });
  std::optional<HangReport> hung;
  if (hang_watch_.End(job) && parts_.hung != nullptr) {
    hung =
        HangWatch::ReportOf(*job, HangLimit(parts_.hang, job->expected), now);
    hung->ended = true;
  }
  const base::Nanoseconds begun = job->begun.load(std::memory_order_relaxed);
  attribution_.Left(*job, result, begun, now, answer);
  if (result.status.ok()) {
    const LoadedModel& model = *job->hold.context->model();
    const uint32_t row = job->hold.bindings->row();
    if (row < model.run_times.size()) {
      model.run_times[row].Record(job->request.core_mask, answer.run);
    }
    job->hold.context->CountJob(*job->hold.bindings, job->request.core_mask);
  }
  if (job->hold.dump != nullptr) {
    // Before the completion: its reader asks for it next.
    job->hold.context->KeepDump(job->hold.dump);
  }
  running_.fetch_sub(1, std::memory_order_relaxed);
  JobHold hold;
  // `job` is another submission's from here on.
  if (ends_.Retire(job, &hold)) {
    answer.drops = hold.context->TakeDrops();
    Attribution::CountAnswer(*hold.context, answer);
    ends_.Answer(*hold.jobs, answer, hold.fences);
  }
  if (hung) {
    WakeBeforeLongWork();
    parts_.hung(*hung);
  }
  const bool left = isolation_.End(hold, granted);
  bool runnable =
      parts_.scheduler->Release(*hold.context, granted,
                                std::max(answer.run, shared.used)) ||
      shared.runnable;
  if (shared.answered != nullptr) [[unlikely]] {
    // The core waits for none of this.
    if (runnable) parts_.waker->WakeOne();
    runnable = AnswerOthers(shared.answered);
  }
  // A worker, which sees to what was left before it sleeps.
  if ((runnable || left) && !in_run_ready) parts_.waker->WakeOne();
  if ((awaited_.load() & granted) != 0) parts_.freed();
  ends_.NoticeIdle();
  // `hold` may be the last to know its session's jobs, and with them this
  // runner.
}

CoreReport RunnerImpl::Report(uint32_t core) const {
  const CoreTime& time = cores_[core];
  CoreReport report;
  report.busy = time.Until(*parts_.clock);
  report.jobs = time.jobs.load(std::memory_order_relaxed);
  return report;
}

void RunnerImpl::SetLent(std::vector<LentCores> lent) {
  const uint32_t cores = leased_.Set(std::move(lent));
  if (parts_.scheduler->SetLent(cores)) parts_.waker->WakeOne();
}

uint32_t RunnerImpl::AwaitCores(uint32_t cores) {
  // A job that ends sees these, or its core is seen to be free: both it and
  // busy() take the scheduler's lock in between.
  awaited_.store(cores);
  return parts_.scheduler->busy();
}

}  // namespace rknnd::core
