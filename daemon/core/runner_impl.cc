// From token to completion. Called by workers, and by a device's own threads
// when a job that it ran elsewhere is over. Jobs were checked by their gate.
//
// The order at a job's end: the slot is freed, the completion posted (the
// client may submit again from here), the arena cleared, the token given back.

#include "daemon/core/runner_impl.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/core/job_gate_impl.h"

namespace rknnd::core {
namespace {

// The job this thread is handing to the device: when it ends meanwhile, on this
// thread, RunReady goes on by itself and nobody needs waking.
thread_local const Job* starting_job = nullptr;

}  // namespace

void RunnerImpl::CoreTime::Begin(base::Nanoseconds now) {
  busy.store(~(now - busy.load(std::memory_order_relaxed)),
             std::memory_order_relaxed);
}

void RunnerImpl::CoreTime::End(base::Nanoseconds now) {
  busy.store(now - ~busy.load(std::memory_order_relaxed),
             std::memory_order_relaxed);
  jobs.fetch_add(1, std::memory_order_relaxed);
}

base::Nanoseconds RunnerImpl::CoreTime::Until(const base::Clock& clock) const {
  const base::Nanoseconds word = busy.load(std::memory_order_relaxed);
  return word >= 0 ? word : clock.Now() - ~word;
}

RunnerImpl::RunnerImpl(Parts parts) : parts_(std::move(parts)) {}

void RunnerImpl::EnterWorker() { parts_.device->EnterWorker(); }

void RunnerImpl::RunReady() {
  for (;;) {
    const Scheduler::Turn turn = parts_.scheduler->TakeNext();
    if (turn.job == nullptr) return;
    if (turn.more) parts_.waker->WakeOne();
    Start(turn.job);
  }
}

void RunnerImpl::Start(Job* job) {
  running_.fetch_add(1, std::memory_order_relaxed);
  const base::Nanoseconds now = parts_.clock->Now();
  ForEachCore(job->granted, [now](CoreTime& time) { time.Begin(now); });
  if (absl::Status refused = Prepare(job); !refused.ok()) {
    End(job, {std::move(refused), 0, 0}, /*in_run_ready=*/true);
    return;
  }
  starting_job = job;
  parts_.device->Submit(job->request);
  starting_job = nullptr;
}

absl::Status RunnerImpl::Prepare(Job* job) {
  const JobSubmission& submission = job->submission;
  if (submission.timeout_ms != 0 &&
      parts_.clock->Now() - job->submitted >=
          submission.timeout_ms * base::kMillisecond) {
    return absl::DeadlineExceededError(
        absl::StrCat("the job waited longer than its ", submission.timeout_ms,
                     " ms and was not run"));
  }
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
    // Arenas shrink only when no context needs them any more, or when its model
    // turned out to be of no use after it was answered for.
    if (job->hold.arena == nullptr ||
        job->hold.arena->size() < program.internal_size) {
      return absl::CancelledError(
          absl::StrCat("context ", submission.context,
                       " has no internal memory any more: it was destroyed, or "
                       "its model has failed and must be loaded again"));
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
  request.outputs = job->hold.bindings->outputs();
  request.layer_times = context.running_times(row);
  job->hold.dump = context.StartDump();
  if (job->hold.dump != nullptr) job->hold.dump->set_row(row);
  request.layer_sink = job->hold.dump.get();
  request.keep_input_caches = context.traits().keep_input_caches;
  request.keep_output_caches = context.traits().keep_output_caches;
  request.submitted = job->submitted;
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

void RunnerImpl::Finish(Job* job, const driver::JobResult& result) {
  End(job, result, starting_job == job);
}

void RunnerImpl::End(Job* job, const driver::JobResult& result,
                     bool in_run_ready) {
  const JobSubmission& submission = job->submission;
  JobCompletion answer;
  answer.slot = submission.slot;
  answer.sequence = submission.sequence;
  answer.frame = submission.frame;
  answer.core = job->core;
  answer.status = result.status;
  const base::Nanoseconds now = parts_.clock->Now();
  const bool started = result.started != 0;
  answer.queue = (started ? result.started : now) - job->submitted;
  answer.run = std::max<base::Nanoseconds>(result.ended - result.started, 0);
  answer.total = now - job->submitted;

  const uint32_t granted = job->granted;
  ForEachCore(granted, [now](CoreTime& time) { time.End(now); });
  if (result.status.ok()) {
    job->hold.context->CountJob(*job->hold.bindings, job->request.core_mask);
  }
  if (job->hold.dump != nullptr) {
    // Before the completion: its reader asks for it next.
    job->hold.context->KeepDump(job->hold.dump);
  }
  running_.fetch_sub(1, std::memory_order_relaxed);
  JobHold hold;
  // `job` is another submission's from here on.
  if (job->hold.gate->Retire(job, &hold)) hold.gate->Answer(answer);
  // Memory that a program brought is its own to clear.
  if (started && hold.arena != nullptr && parts_.isolate) {
    const uint64_t used =
        hold.context->model()->program(hold.bindings->row()).internal_size;
    hold.arena->memory()->Clear(0, used);
    for (const auto& arena : hold.gang_arenas) {
      if (arena != nullptr) arena->memory()->Clear(0, used);
    }
  }
  const bool runnable = parts_.scheduler->Release(*hold.context, granted);
  if (runnable && !in_run_ready) parts_.waker->WakeOne();
  NoticeIdle();
  // `hold` may be the last to know the gate, and with it this runner.
}

CoreReport RunnerImpl::Report(uint32_t core) const {
  const CoreTime& time = cores_[core];
  CoreReport report;
  report.busy = time.Until(*parts_.clock);
  report.jobs = time.jobs.load(std::memory_order_relaxed);
  return report;
}

void RunnerImpl::Drain() {
  draining_.store(true);
  NoticeIdle();
}

void RunnerImpl::NoticeIdle() {
  if (!draining_.load(std::memory_order_relaxed)) return;
  const SchedulerCounts counts = parts_.scheduler->counts();
  if (counts.queued == 0 && counts.running == 0) parts_.idle();
}

}  // namespace rknnd::core
