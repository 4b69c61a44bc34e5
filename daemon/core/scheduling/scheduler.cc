// The run queue: what comes in, begins, ends and is taken back. Whose turn it
// is, is decided in scheduler_turns.cc. Called by gates and the runner with
// jobs whose context, cores and bindings have been checked.

#include "daemon/core/scheduling/scheduler.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/posix/hot_path.h"

namespace rknnd::core {
namespace {

// Of NPU time, for those who come back.
constexpr base::Nanoseconds kMostCredit = 100 * base::kMillisecond;

uint32_t RowOf(const Job& job) {
  return job.hold.bindings == nullptr ? 0 : job.hold.bindings->row();
}

RKNND_HOT_PATH base::Nanoseconds ExpectedRun(const Job& job, uint32_t cores) {
  return job.hold.context->model()->expected_run(RowOf(job), cores);
}

// On the cores it asks for.
base::Nanoseconds ExpectedRun(const Job& job) {
  return ExpectedRun(job, job.cores.gang ? job.cores.cores : 1);
}

bool SameMemory(const Job& a, const Job& b) {
  if (a.alone == nullptr || b.alone == nullptr) return a.alone == b.alone;
  return a.alone->identity == b.alone->identity &&
         a.alone->begin == b.alone->begin && a.alone->end == b.alone->end;
}

}  // namespace

Scheduler::Scheduler(uint32_t cores, uint32_t jobs_per_context,
                     const SchedulingOptions& options, const base::Clock* clock)
    : cores_(cores),
      all_(AllCores(cores)),
      jobs_per_context_(jobs_per_context),
      bound_(options.starvation_bound),
      hang_(options.hang),
      longest_run_(options.longest_run),
      clock_(*clock),
      nobody_(options.share, cores),
      lines_(cores, &nobody_),
      core_budget_(options.starvation_bound * cores),
      free_(all_) {}

RKNND_HOT_PATH Scheduler::Entry Scheduler::Enqueue(Job* job) {
  RunContext& context = *job->hold.context;
  ContextQueue& queue = context.queue;
  job->expected = ExpectedRun(*job);
  const int cores = job->cores.gang ? std::popcount(job->cores.cores) : 1;
  base::MutexLock lock(mutex_);
  if (OnLentOnly(job->cores)) return Entry::kLent;
  if (job->expected > longest_run_ / cores) return Entry::kLong;
  if (queue.jobs >= jobs_per_context_) return Entry::kFull;
  job->next = nullptr;
  job->ticket = next_ticket_++;
  (queue.first == nullptr ? queue.first : queue.last->next) = job;
  queue.last = job;
  ++queue.jobs;
  ++counts_.queued;
  MakeReady(context);
  return Entry::kQueued;
}

RKNND_HOT_PATH Scheduler::Turn Scheduler::TakeNext() {
  base::MutexLock lock(mutex_);
  // Before the look at the time, which costs as much as all of this.
  if (counts_.queued == 0) return {};
  const base::Nanoseconds now = clock_.Now();
  const Choice choice = Find(now);
  if (choice.context == nullptr) return {};
  Job* const job = choice.context->queue.first;
  Begin(choice, job, now);
  return {job, Find(now).context != nullptr};
}

RKNND_HOT_PATH void Scheduler::Begin(const Choice& choice, Job* job,
                                     base::Nanoseconds now) {
  RunContext& context = *choice.context;
  ContextQueue& queue = context.queue;
  Line& line = lines_.LineOf(context);
  lines_.Join(*line.flow);  // before it leaves as one that waits
  RemoveReady(context);
  due_last_ = choice.due;
  queue.first = job->next;
  job->next = nullptr;
  queue.running = true;
  if (job->cores.gang) {
    job->granted = choice.cores;
    job->core = static_cast<uint32_t>(std::countr_zero(job->granted));
  } else {
    job->core = ChooseCore(choice.cores & job->cores.cores);
    job->granted = uint32_t{1} << job->core;
    if (const uint32_t spare = SpareFor(*job); spare != 0) {
      job->granted |= spare;
      job->core = static_cast<uint32_t>(std::countr_zero(job->granted));
      job->expected = ExpectedRun(*job, job->granted);
    }
  }
  free_ &= ~job->granted;
  turns_.Start(*job);
  CoreBudget::Start(context, job->expected * std::popcount(job->granted));
  --counts_.queued;
  ++counts_.running;

  const base::Nanoseconds expected = job->expected;
  Flow& flow = *line.flow;
  const auto priority = static_cast<size_t>(flow.priority);
  Running run{now, expected, 0, flow.priority};
  run.charge = Virtual(expected * std::popcount(job->granted), flow.weight);
  for (uint32_t core = 0; core < cores_; ++core) {
    if ((job->granted >> core & 1) == 0) continue;
    running_[core] = run;
    uint64_t& level = levels_[priority][core];
    if (choice.in_order) level = Later(level, flow.time);
  }
  lines_.Charge(flow, static_cast<int64_t>(run.charge));
  lines_.NoteTurn(line, now);
  if (now - longest_since_ > bound_) {
    longest_before_ = std::exchange(longest_, 0);
    longest_since_ = now;
  }
  longest_ = std::max(longest_, expected);
}

RKNND_HOT_PATH bool Scheduler::Release(RunContext& context, uint32_t granted,
                                       base::Nanoseconds used) {
  base::MutexLock lock(mutex_);
  --counts_.running;
  context.queue.running = false;
  --context.queue.jobs;
  Flow& flow = lines_.FlowOf(context);
  const uint64_t had =
      Virtual(std::max<base::Nanoseconds>(used, 0) * std::popcount(granted),
              flow.weight);
  // One that was claimed had no core.
  const uint64_t charged =
      granted == 0
          ? 0
          : running_[static_cast<size_t>(std::countr_zero(granted))].charge;
  if (had != charged) lines_.Charge(flow, static_cast<int64_t>(had - charged));
  GiveBack(context, granted);
  MakeReady(context);
  lines_.Leave(flow);
  return counts_.queued != 0 && Find(clock_.Now()).context != nullptr;
}

Job* Scheduler::Cancel(RunContext& context) {
  base::MutexLock lock(mutex_);
  return TakeOut(context, [](const Job&) { return true; });
}

Job* Scheduler::CancelLent(RunContext& context) {
  base::MutexLock lock(mutex_);
  return TakeOut(context,
                 [this](const Job& job) RKNND_NO_THREAD_SAFETY_ANALYSIS {
                   return OnLentOnly(job.cores);
                 });
}

bool Scheduler::Remove(Job* job) {
  base::MutexLock lock(mutex_);
  RunContext* const context = job->hold.context.get();
  if (context == nullptr) return false;
  if (job == context->queue.first && job->next != nullptr) {
    job->next->ticket = job->ticket;
    if (Replace(*context)) return true;
  }
  return TakeOut(*context, [job](const Job& queued) {
           return &queued == job;
         }) != nullptr;
}

bool Scheduler::Replace(RunContext& context) {
  ContextQueue& queue = context.queue;
  Job* const job = queue.first;
  Job* const next = job->next;
  if ((!queue.ready && !queue.parked && !queue.held) || next->waits_for_fence ||
      !(next->cores == job->cores) || !SameMemory(*next, *job)) {
    return false;
  }
  queue.first = next;
  job->next = nullptr;
  --queue.jobs;
  --counts_.queued;
  return true;
}

Job* Scheduler::TakeOut(RunContext& context,
                        absl::FunctionRef<bool(const Job&)> chosen) {
  ContextQueue& queue = context.queue;
  if (queue.first == nullptr) return nullptr;
  const bool oldest_goes = chosen(*queue.first);
  if (oldest_goes) Withdraw(context);
  Job* taken = nullptr;
  Job** taken_end = &taken;
  Job* last_left = nullptr;
  Job** place = &queue.first;
  while (*place != nullptr) {
    Job* const job = *place;
    if (!chosen(*job)) {
      last_left = job;
      place = &job->next;
      continue;
    }
    *place = job->next;
    job->next = nullptr;
    *taken_end = job;
    taken_end = &job->next;
    --queue.jobs;
    --counts_.queued;
  }
  queue.last = last_left;
  if (oldest_goes) MakeReady(context);
  return taken;
}

bool Scheduler::Unhold(Job* job) {
  base::MutexLock lock(mutex_);
  RunContext* const context = job->hold.context.get();
  if (context == nullptr) return false;
  const Job* queued = context->queue.first;
  while (queued != nullptr && queued != job) queued = queued->next;
  if (queued == nullptr) return false;
  job->waits_for_fence = false;
  MakeReady(*context);
  return Find(clock_.Now()).context != nullptr;
}

bool Scheduler::Claim(Job* job) {
  base::MutexLock lock(mutex_);
  RunContext& context = *job->hold.context;
  ContextQueue& queue = context.queue;
  if (queue.first != job || queue.running) return false;
  lines_.Join(lines_.FlowOf(context));
  Withdraw(context);
  queue.first = job->next;
  job->next = nullptr;
  job->waits_for_fence = false;
  job->core = job->granted = 0;
  queue.running = true;
  --counts_.queued;
  ++counts_.running;
  return true;
}

bool Scheduler::PutBack(Job* job) {
  base::MutexLock lock(mutex_);
  RunContext& context = *job->hold.context;
  ContextQueue& queue = context.queue;
  const uint64_t charged =
      running_[static_cast<size_t>(std::countr_zero(job->granted))].charge;
  Flow& flow = lines_.FlowOf(context);
  lines_.Charge(flow, -static_cast<int64_t>(charged));
  lines_.Leave(flow);
  GiveBack(context, std::exchange(job->granted, 0));
  job->expected = ExpectedRun(*job);
  queue.running = false;
  job->next = queue.first;
  if (queue.first == nullptr) queue.last = job;
  queue.first = job;
  job->waits_for_fence = true;
  --counts_.running;
  ++counts_.queued;
  return Find(clock_.Now()).context != nullptr;
}

bool Scheduler::SetLent(uint32_t cores) {
  base::MutexLock lock(mutex_);
  lent_ = cores & all_;
  return Find(clock_.Now()).context != nullptr;
}

bool Scheduler::CanBegin() {
  base::MutexLock lock(mutex_);
  return counts_.queued != 0 && Find(clock_.Now()).context != nullptr;
}

uint32_t Scheduler::busy() const {
  base::MutexLock lock(mutex_);
  return all_ & ~free_;
}

SchedulerCounts Scheduler::counts() const {
  base::MutexLock lock(mutex_);
  return counts_;
}

bool Scheduler::OnLentOnly(const CoreChoice& choice) const {
  return choice.gang ? (choice.cores & lent_) != 0
                     : (choice.cores & ~lent_) == 0;
}

RKNND_HOT_PATH void Scheduler::MakeReady(RunContext& context) {
  const ContextQueue& queue = context.queue;
  if (queue.running || queue.parked || queue.held || queue.ready ||
      queue.first == nullptr || queue.first->waits_for_fence) {
    return;
  }
  lines_.Insert(context, LeastFor(context), clock_.Now());
}

void Scheduler::RemoveReady(RunContext& context) {
  lines_.Remove(context);
  if (gathering_ != &context) return;
  gathering_ = nullptr;
  gathering_due_ = false;
}

void Scheduler::Withdraw(RunContext& context) {
  turns_.Forget(context,
                [this](RunContext& ready)
                    RKNND_NO_THREAD_SAFETY_ANALYSIS { MakeReady(ready); });
  CoreBudget::Forget(context);
  if (context.queue.ready) RemoveReady(context);
}

RKNND_HOT_PATH void Scheduler::GiveBack(RunContext& context, uint32_t granted) {
  base::Nanoseconds core_time = 0;  // as it was expected
  for (uint32_t core = 0; core < cores_; ++core) {
    if ((granted >> core & 1) == 0) continue;
    core_time += running_[core].expected;
    running_[core] = {};
  }
  free_ |= granted;
  const auto ready = [this](RunContext& other)
                         RKNND_NO_THREAD_SAFETY_ANALYSIS { MakeReady(other); };
  turns_.End(context, ready);
  core_budget_.End(context, core_time, ready);
}

RKNND_HOT_PATH uint64_t Scheduler::LeastFor(const RunContext& context) const {
  const Flow& flow = lines_.FlowOf(context);
  const auto& levels = levels_[static_cast<size_t>(flow.priority)];
  uint64_t least = flow.time;
  uint64_t longest = 0;
  const uint32_t mask = context.queue.first->cores.cores;
  for (uint32_t core = 0; core < cores_; ++core) {
    if ((mask >> core & 1) != 0) least = Later(least, levels[core]);
    const Running& run = running_[core];
    if (run.priority == flow.priority) longest = std::max(longest, run.charge);
  }
  // Whoever waited for its own run to end, while longer ones ran, keeps what it
  // has not had; within reason, as runs may be expected to take anything.
  return least - std::min(longest, Virtual(kMostCredit, flow.weight));
}

RKNND_HOT_PATH uint32_t Scheduler::SpareFor(const Job& job) const {
  const RunContext& context = *job.hold.context;
  const driver::ProgramInfo& program = context.model()->program(RowOf(job));
  // Each core computes slices in an arena of its own.
  if (program.batch <= 1 || program.internal_size == 0 ||
      context.traits().internal_outside || context.own_arena() != nullptr ||
      std::has_single_bit(job.cores.cores)) {
    return 0;
  }
  const Lanes& lanes = lines_.lanes();
  uint32_t spare = free_ & ~lent_ & ~job.granted;
  for (uint32_t lane = 0; lane < lanes.count(); ++lane) {
    if (lane != lanes.any() && lines_.count(lane) != 0) {
      spare &= ~lanes.MaskOf(lane);
    }
  }
  auto left = static_cast<uint32_t>(std::popcount(spare));
  left -= std::min(left, lines_.count(lanes.any()));
  left = std::min(left, program.batch - 1);
  // The lowest `left` of them.
  uint32_t given = 0;
  for (; left > 0; --left, spare &= spare - 1) given |= spare & -spare;
  return given;
}

}  // namespace rknnd::core
