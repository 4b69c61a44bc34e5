// Called by gates and the runner, on workers and device threads, with jobs that
// their gate has checked; frame numbers are clients' words.

#include "daemon/core/running/shared_runs.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/values/overflow.h"
#include "daemon/core/terms/options.h"

namespace rknnd::core {
namespace {

// What the starts of tensors are aligned to, as those of intermediate ones.
constexpr uint64_t kAlignment = 64;
constexpr uint64_t kPage = 4096;

bool SameForm(std::span<const driver::TensorBinding> a,
              std::span<const driver::TensorBinding> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const driver::TensorBinding& left,
                       const driver::TensorBinding& right) {
                      return left.format == right.format;
                    });
}

}  // namespace

SharedRun::SharedRun(const Paging& paging, Charge charge, PagedMemory memory,
                     const Job& job)
    : paging_(paging),
      charge_(std::move(charge)),
      memory_(std::move(memory)),
      model_(job.hold.context->model()),
      model_name_(job.hold.context->model().get()),
      row_(job.hold.bindings->row()) {
  const BindingSet& bindings = *job.hold.bindings;
  uint64_t offset = 0;
  for (size_t i = 0; i < bindings.outputs().size(); ++i) {
    const uint64_t size = bindings.output_bytes(i);
    outputs_.push_back(
        {memory_.memory.get(), offset, bindings.outputs()[i].format});
    sizes_.push_back(size);
    bytes_ += size;
    offset += (size + kAlignment - 1) / kAlignment * kAlignment;
  }
}

SharedRun::~SharedRun() {
  charge_ = Charge();
  FreeMemory(paging_, std::move(memory_));
}

SharedRuns::SharedRuns(Parts parts) : parts_(std::move(parts)) {
  base::MutexLock lock(mutex_);
  rooms_.reserve(kMostRooms);
}

bool SharedRuns::CanShare(const RunContext& context,
                          const BindingSet& bindings) {
  const ContextTraits& traits = context.traits();
  return !traits.collect_perf && !traits.keep_input_caches &&
         !traits.keep_output_caches && bindings.alone() == nullptr;
}

void SharedRuns::Enter(Job* job) {
  job->shared = {};
  job->joined = false;
  // What it waits for may come after an equal run has read: until then it is
  // nobody's reader.
  if (job->submission.fence_in != 0) return;
  base::MutexLock lock(mutex_);
  List(job);
}

void SharedRuns::Leave(Job* job) {
  base::MutexLock lock(mutex_);
  Unlist(job);
}

void SharedRuns::List(Job* job) {
  if (job->shared.listed) return;
  Job*& first = BucketOf(*job);
  job->shared.previous = nullptr;
  job->shared.next = first;
  if (first != nullptr) first->shared.previous = job;
  first = job;
  job->shared.listed = true;
}

void SharedRuns::Unlist(Job* job) {
  SharedPlace& place = job->shared;
  if (!place.listed) return;
  (place.previous == nullptr ? BucketOf(*job) : place.previous->shared.next) =
      place.next;
  if (place.next != nullptr) place.next->shared.previous = place.previous;
  place = {};
}

bool SharedRuns::Answers(const SharedRun& run, const Job& job) {
  const RunContext& context = *job.hold.context;
  const ContextTraits& traits = context.traits();
  if (run.frame_ != job.submission.frame ||
      run.model_name_ != context.model().get() || run.model_.expired() ||
      run.session_ == traits.session ||
      // A gang sums up in another order.
      run.cores_.gang != job.cores.gang ||
      (run.cores_.gang && run.cores_.cores != job.cores.cores) ||
      run.key_ != job.hold.bindings->run_key()) {
    return false;
  }
  return run.user_ == traits.user ||
         (run.begun_ >= job.submitted && job.submission.fence_in == 0);
}

bool SharedRuns::Fresh(const SharedRun& run) const {
  return parts_.clock->Now() - run.ended_ < kKept;
}

bool SharedRuns::IsFree(const SharedRun& run) const {
  using State = SharedRun::State;
  return run.readers_ == 0 &&
         (run.state_ == State::kIdle || run.state_ == State::kKept);
}

SharedRuns::Verdict SharedRuns::Begin(Job* job) {
  using State = SharedRun::State;
  const base::Nanoseconds granted = parts_.clock->Now();
  std::shared_ptr<SharedRun> made;
  for (bool again = false;; again = true) {
    {
      base::MutexLock lock(mutex_);
      job->joined = false;
      if (stopped_ || job->hold.context->dump_armed()) {
        Unlist(job);
        return Verdict::kRun;
      }
      for (const auto& run : rooms_) {
        if (!Answers(*run, *job)) continue;
        if (run->state_ == State::kRunning) {
          List(job);
          job->joined = true;
          // The scheduler's from here on, and anybody's who takes it there.
          // Who else can run now, our caller sees.
          parts_.scheduler->PutBack(job);
          return Verdict::kWait;
        }
        if (run->state_ == State::kKept && Fresh(*run)) {
          Unlist(job);
          ++run->readers_;
          job->hold.shared = run;
          return Verdict::kAnswer;
        }
      }
      Unlist(job);
      std::shared_ptr<SharedRun> run = FindRoom(*job);
      if (run == nullptr && made != nullptr && rooms_.size() < kMostRooms) {
        rooms_.push_back(made);
        run = std::move(made);
      }
      if (run != nullptr) BeginRun(job, run, granted);
      if (run != nullptr || again) return Verdict::kRun;
    }
    made = MakeRoom(*job);
    if (made == nullptr) return Verdict::kRun;
  }
}

void SharedRuns::BeginRun(Job* job, const std::shared_ptr<SharedRun>& run,
                          base::Nanoseconds granted) {
  const ContextTraits& traits = job->hold.context->traits();
  run->state_ = SharedRun::State::kRunning;
  run->frame_ = job->submission.frame;
  run->key_ = job->hold.bindings->run_key();
  run->cores_ = job->cores;
  run->session_ = traits.session;
  run->user_ = traits.user;
  run->core_ = job->core;
  run->job_ = job;
  run->granted_ = granted;
  run->begun_ = run->used_ = parts_.clock->Now();
  job->hold.shared = run;
}

std::shared_ptr<SharedRun> SharedRuns::FindRoom(const Job& job) {
  for (const auto& run : rooms_) {
    if (IsFree(*run) &&
        (run->state_ == SharedRun::State::kIdle || !Fresh(*run)) &&
        run->model_name_ == job.hold.context->model().get() &&
        !run->model_.expired() && run->row_ == job.hold.bindings->row() &&
        SameForm(run->outputs_, job.hold.bindings->outputs())) {
      return run;
    }
  }
  return nullptr;
}

std::shared_ptr<SharedRun> SharedRuns::TakeOldest() {
  auto oldest = rooms_.end();
  for (auto run = rooms_.begin(); run != rooms_.end(); ++run) {
    if (!IsFree(**run)) continue;
    if (oldest == rooms_.end() || (*run)->used_ < (*oldest)->used_) {
      oldest = run;
    }
  }
  if (oldest == rooms_.end()) return nullptr;
  std::shared_ptr<SharedRun> taken = std::move(*oldest);
  rooms_.erase(oldest);
  return taken;
}

std::shared_ptr<SharedRun> SharedRuns::MakeRoom(const Job& job) {
  uint64_t size = 0;
  const BindingSet& bindings = *job.hold.bindings;
  for (size_t i = 0; i < bindings.outputs().size(); ++i) {
    const auto aligned =
        base::CheckedAlignUp(bindings.output_bytes(i), kAlignment);
    const auto sum = base::CheckedAdd(size, aligned.value_or(UINT64_MAX));
    if (!sum.has_value()) return nullptr;
    size = *sum;
  }
  const auto pages = base::CheckedAlignUp(size, kPage);
  // What can never fit drives nobody's answers out.
  if (!pages.has_value() || *pages == 0 || *pages > kMostBytes) return nullptr;
  for (;;) {
    std::shared_ptr<SharedRun> oldest;
    bool full = false;
    {
      base::MutexLock lock(mutex_);
      full = rooms_.size() >= kMostRooms;
      if (full) oldest = TakeOldest();
    }
    if (full && oldest == nullptr) return nullptr;
    oldest.reset();
    auto charge = parts_.account->TryChargeFree(MemoryKind::kInternal, *pages);
    if (charge.ok()) {
      auto memory = MakeMemory(parts_.paging, *pages, 0);
      if (!memory.ok()) return nullptr;
      // A heap may give more than whole pages.
      if (memory->size > *pages) {
        charge =
            parts_.account->TryChargeFree(MemoryKind::kInternal, memory->size);
        if (!charge.ok()) return nullptr;
      }
      parts_.paging.loop->Post([weak = weak_from_this()] {
        if (const auto self = weak.lock()) self->ArmTrim();
      });
      return std::make_shared<SharedRun>(parts_.paging, *std::move(charge),
                                         *std::move(memory), job);
    }
    base::MutexLock lock(mutex_);
    oldest = TakeOldest();
    if (oldest == nullptr) return nullptr;
  }
}

absl::Status SharedRuns::Copy(const SharedRun& run, const Job& job) {
  absl::Status status;
  const auto outputs = job.hold.bindings->outputs();
  for (size_t i = 0; i < outputs.size(); ++i) {
    status.Update(outputs[i].memory->CopyFrom(
        *run.outputs_[i].memory, run.outputs_[i].offset, outputs[i].offset,
        run.sizes_[i]));
  }
  if (status.ok()) job.hold.context->CountCopied(run.bytes_);
  return status;
}

SharedRuns::Ending SharedRuns::End(Job* job, const driver::JobResult& result) {
  using State = SharedRun::State;
  const std::shared_ptr<SharedRun> run = job->hold.shared;
  Ending ending;
  ending.status = result.status;
  const bool good = result.status.ok();
  // Its own memory may be bad: that is its own affair.
  if (good) ending.status = Copy(*run, *job);
  base::MutexLock lock(mutex_);
  run->state_ = good ? State::kKept : State::kIdle;
  run->job_ = nullptr;
  run->used_ = parts_.clock->Now();
  ending.used = run->used_ - run->granted_;
  run->started_ = result.started;
  run->ended_ = result.ended;
  if (good) {
    Job* next = nullptr;
    for (Job* other = BucketOf(*job); other != nullptr; other = next) {
      next = other->shared.next;
      if (!Answers(*run, *other) || other->hold.context->dump_armed() ||
          !parts_.scheduler->Claim(other)) {
        continue;
      }
      Unlist(other);
      other->joined = false;
      ++run->readers_;
      other->hold.shared = run;
      other->next = ending.answered;
      ending.answered = other;
    }
  }
  ending.runnable = LetGo(*run);
  return ending;
}

bool SharedRuns::Abandon(const Job& job) {
  base::MutexLock lock(mutex_);
  SharedRun* const run = job.hold.shared.get();
  if (run == nullptr || run->job_ != &job ||
      run->state_ != SharedRun::State::kRunning) {
    return false;
  }
  run->state_ = SharedRun::State::kLost;
  return LetGo(*run);
}

bool SharedRuns::LetGo(const SharedRun& run) {
  bool runnable = false;
  for (Job* job = listed_[run.frame_ % kBuckets]; job != nullptr;
       job = job->shared.next) {
    if (!job->joined || !Answers(run, *job)) continue;
    runnable = parts_.scheduler->Unhold(job) || runnable;
    // Behind it: who sees neither sees a job that is not held (Expire).
    job->joined = false;
  }
  return runnable;
}

void SharedRuns::Answer(Job* job, JobCompletion* completion) {
  const std::shared_ptr<SharedRun> run = job->hold.shared;
  completion->status = Copy(*run, *job);
  completion->shared = true;
  completion->core = run->core_;
  const base::Nanoseconds now = parts_.clock->Now();
  const base::Nanoseconds ended = std::min(run->ended_, now);
  completion->total = now - job->submitted;
  if (ended <= job->submitted) {
    // It was there before the job: all of that is waiting.
    completion->queue = completion->total;
  } else {
    // Of the run, what it waited for.
    const base::Nanoseconds started =
        std::clamp(run->started_, job->submitted, ended);
    completion->queue = started - job->submitted;
    completion->run = ended - started;
  }
  if (completion->status.ok()) job->hold.context->CountShared();
  base::MutexLock lock(mutex_);
  --run->readers_;
  run->used_ = now;
}

bool SharedRuns::DropIdle() {
  std::shared_ptr<SharedRun> oldest;
  base::MutexLock lock(mutex_);
  oldest = TakeOldest();
  return oldest != nullptr;
}

void SharedRuns::Stop() {
  if (trim_ != 0) parts_.timers->Cancel(trim_);
  trim_ = 0;
  std::vector<std::shared_ptr<SharedRun>> rooms;
  base::MutexLock lock(mutex_);
  stopped_ = true;
  // Those that run go with their jobs.
  rooms.swap(rooms_);
}

void SharedRuns::ArmTrim() {
  if (trim_ != 0) return;
  {
    base::MutexLock lock(mutex_);
    if (stopped_ || rooms_.empty()) return;
  }
  trim_ = parts_.timers->RunAfter(kRoomKept, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->Trim();
  });
}

void SharedRuns::Trim() {
  trim_ = 0;
  std::vector<std::shared_ptr<SharedRun>> unused;
  {
    base::MutexLock lock(mutex_);
    const base::Nanoseconds now = parts_.clock->Now();
    std::erase_if(rooms_, [&](std::shared_ptr<SharedRun>& run) {
      if (!IsFree(*run) || now - run->used_ < kRoomKept) return false;
      unused.push_back(std::move(run));
      return true;
    });
  }
  ArmTrim();
}

}  // namespace rknnd::core
