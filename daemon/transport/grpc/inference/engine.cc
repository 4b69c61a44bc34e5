// The engine's ways in, its thread, and jobs from their lane to their end. What
// happens on the loop is in engine_loop.cc.

#include "daemon/transport/grpc/inference/engine.h"

#include <sys/resource.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "driver/memory/cache_sync.h"

namespace rknnd::transport {
namespace {

// The thread looks by itself so often; whatever it waits for wakes it.
constexpr base::Nanoseconds kLongestSleep = 3600 * base::kSecond;
// As gRPC's threads (server.cc): local clients come first.
constexpr int kNiceness = 10;
// A job that a reset of the device ended runs again so often.
constexpr uint32_t kAttempts = 3;

absl::Status Stopped() {
  return absl::UnavailableError("the daemon stops: ask again in a moment");
}

absl::Status Draining() {
  return absl::UnavailableError(
      "the daemon is draining and takes no new inferences");
}

absl::Status TooLate() {
  return absl::DeadlineExceededError(
      "the request waited for the NPU until its deadline");
}

// The lane's memory of each tensor; empty where it is a client's.
template <class Byte>
std::vector<std::span<Byte>> OwnMemory(
    const std::vector<std::span<std::byte>>& memory,
    const std::vector<PortBinding>& ports) {
  std::vector<std::span<Byte>> own;
  for (size_t i = 0; i < ports.size(); ++i) {
    own.push_back(ports[i].region == 0
                      ? memory[i].first(static_cast<size_t>(ports[i].bytes))
                      : std::span<std::byte>());
  }
  return own;
}

}  // namespace

// ---- ways in ----------------------------------------------------------------

void Engine::Open(const core::ModelId& id, const ViewCallback& done) {
  absl::StatusOr<std::shared_ptr<const ModelView>> known = Stopped();
  bool is_known = true;
  {
    base::MutexLock lock(mutex_);
    if (!stopping_) {
      Model& model = models_[id];
      model.used = options_.clock->Now();
      if (model.view == nullptr) {
        is_known = false;
        model.openers.push_back(done);
        if (model.openers.size() > 1) return;
      } else {
        known = model.view;
      }
    }
  }
  if (is_known) return done(std::move(known));
  if (PostToLoop([this, id] { LookAt(id); })) return;
  std::vector<ViewCallback> openers;
  {
    base::MutexLock lock(mutex_);
    openers = std::move(models_[id].openers);
  }
  for (const ViewCallback& opener : openers) opener(Stopped());
}

void Engine::Submit(const std::shared_ptr<const ModelView>& model,
                    InferenceRunPtr run) {
  run->arrived_ = options_.clock->Now();
  absl::Status refused;
  {
    base::MutexLock lock(mutex_);
    if (stopping_) {
      refused = Stopped();
    } else if (draining_) {
      refused = Draining();
    } else if (run->cancelled_) {
      refused = absl::CancelledError("the client took the request back");
    } else if (waiting_ >= options_.waiting) {
      refused = absl::ResourceExhaustedError(
          absl::StrCat("the queue is full: ", waiting_,
                       " requests wait for the NPU (limit 'grpc.requests')"));
    } else {
      Model& entry = models_[model->id];
      if (entry.view == nullptr) entry.view = model;
      if (entry.rows.size() < model->rows.size()) {
        entry.rows.resize(model->rows.size());
      }
      entry.used = run->arrived_;
      run->number_ = ++arrivals_;
      ++waiting_;
      if (run->deadline < next_deadline_) {
        next_deadline_ = run->deadline;
        completions_->Wake();
      }
      entry.rows[run->row].waiting.Push(run);
    }
  }
  if (!refused.ok()) return Refuse(run, refused);
  Dispatch(model, run->row);
}

void Engine::Cancel(const InferenceRunPtr& run) {
  core::JobSubmission cancel;
  cancel.operation = core::JobSubmission::Operation::kCancel;
  bool waited = false;
  bool submitted = false;
  {
    base::MutexLock lock(mutex_);
    run->cancelled_ = true;
    if (run->number_ == 0) return;  // Submit will see it
    for (auto& [id, model] : models_) {
      if (run->row >= model.rows.size()) continue;
      waited = waited || model.rows[run->row].waiting.Remove(*run);
    }
    if (waited) --waiting_;
    const auto in_flight =
        std::find_if(slots_.begin(), slots_.end(), [&](const Slot& slot) {
          return slot.lane != nullptr && slot.lane->run == run;
        });
    const std::optional<uint32_t> slot = FreeSlot();
    // Without a slot it runs to its end, for nobody.
    if (!waited && in_flight != slots_.end() && slot.has_value()) {
      slots_[*slot].taken = submitted = true;
      cancel.slot = *slot;
      cancel.context = in_flight->lane->context;
      cancel.frame = run->number_;
    }
  }
  if (waited) {
    Refuse(run, absl::CancelledError("the client took the request back"));
  }
  if (!submitted) return;
  base::MutexLock lock(submit_mutex_);
  gate_->Submit(cancel).IgnoreError();
}

bool Engine::Post(std::function<void()> task) {
  {
    base::MutexLock lock(mutex_);
    if (stopping_) return false;
    tasks_.push_back(std::move(task));
  }
  completions_->Wake();
  return true;
}

void Engine::Refuse(const InferenceRunPtr& run,
                    const absl::Status& status) const {
  RunParts parts;
  parts.queue = options_.clock->Now() - run->arrived_;
  run->Finish(status, parts, {});
}

// ---- lanes ------------------------------------------------------------------

std::optional<uint32_t> Engine::FreeSlot() const {
  const auto free = std::find_if(slots_.begin(), slots_.end(),
                                 [](const Slot& slot) { return !slot.taken; });
  if (free == slots_.end()) return std::nullopt;
  return static_cast<uint32_t>(free - slots_.begin());
}

std::optional<Engine::Start> Engine::TakeStart(
    const std::shared_ptr<const ModelView>& model, uint32_t row) {
  const auto found = models_.find(model->id);
  if (found == models_.end() || stopping_) return std::nullopt;
  if (row >= found->second.rows.size()) return std::nullopt;
  Row& lanes = found->second.rows[row];
  if (lanes.waiting.empty()) return std::nullopt;
  Lane* free = nullptr;
  for (const std::unique_ptr<Lane>& lane : lanes.lanes) {
    if (lane->taken) continue;
    // One that is bound as this run needs it saves a way over the loop.
    const bool fits = lane->bound == lanes.waiting.front()->bindings;
    if (free == nullptr || fits) free = lane.get();
    if (fits) break;
  }
  if (free == nullptr) {
    const auto number = static_cast<uint32_t>(lanes.lanes.size());
    if (!lanes.growing && !lanes.full &&
        number < device_cores_ * kLanesPerContext) {
      lanes.growing = true;
      grow_.push_back({model, row, number});
    }
    return std::nullopt;
  }
  free->taken = true;
  free->run = lanes.waiting.Pop();
  --waiting_;
  return Start{model, free, !(free->bound == free->run->bindings)};
}

void Engine::Dispatch(const std::shared_ptr<const ModelView>& model,
                      uint32_t row) {
  for (;;) {
    std::optional<Start> start;
    std::vector<Growth> grow;
    {
      base::MutexLock lock(mutex_);
      start = TakeStart(model, row);
      grow.swap(grow_);
    }
    for (const Growth& more : grow) {
      PostToLoop([this, more] { Grow(more); });
    }
    if (!start.has_value()) return;
    if (!start->rebind) {
      FillAndSubmit(*start);
    } else if (!PostToLoop([this, start = *start] { Rebind(start); })) {
      EndRun(*start, Stopped());
    }
  }
}

void Engine::FillAndSubmit(const Start& start) {
  Lane& lane = *start.lane;
  InferenceRunPtr run;
  {
    base::MutexLock lock(mutex_);
    run = lane.run;
  }
  if (run == nullptr) return FreeLane(start);
  const base::Nanoseconds begun = options_.clock->Now();
  lane.parts = {};
  lane.parts.queue = begun - run->arrived_;
  if (run->deadline <= begun) return EndRun(start, TooLate());
  const auto inputs = OwnMemory<std::byte>(lane.inputs, lane.bound.inputs);
  absl::Status filled =
      lane.dma_buf
          ? driver::BeginCpuAccess(lane.fd.get(), driver::CpuAccess::kWrite)
          : absl::OkStatus();
  if (filled.ok()) {
    filled = run->Fill(inputs);
    if (lane.dma_buf) {
      filled.Update(
          driver::EndCpuAccess(lane.fd.get(), driver::CpuAccess::kWrite));
    }
  }
  lane.parts.input = options_.clock->Now() - begun;
  if (!filled.ok()) return EndRun(start, filled);
  SubmitJob(start);
}

void Engine::SubmitJob(const Start& start) {
  Lane& lane = *start.lane;
  core::JobSubmission job;
  job.context = lane.context;
  job.set = lane.set;
  absl::Status refused;
  bool gone = false;
  {
    base::MutexLock lock(mutex_);
    const std::optional<uint32_t> slot = FreeSlot();
    if (lane.run == nullptr) {
      gone = true;
    } else if (lane.run->cancelled_) {
      refused = absl::CancelledError("the client took the request back");
    } else if (!slot.has_value()) {
      refused = absl::ResourceExhaustedError(absl::StrCat(
          "all ", core::kJobSlots, " places for remote jobs are taken"));
    } else {
      job.slot = *slot;
      job.frame = lane.run->number_;
      if (lane.run->deadline != InferenceRun::kNoDeadline) {
        job.deadline = std::max<base::Nanoseconds>(
            1, lane.run->deadline - options_.clock->Now());
      }
      slots_[*slot] = {true, &lane, start.model};
    }
  }
  if (gone) return FreeLane(start);
  if (!refused.ok()) return EndRun(start, refused);
  {
    base::MutexLock lock(submit_mutex_);
    refused = gate_->Submit(job);
  }
  if (refused.ok()) return options_.waker->WakeOne();
  // The session has ended: there will be no completion.
  {
    base::MutexLock lock(mutex_);
    slots_[job.slot] = {};
  }
  EndRun(start, Stopped());
}

void Engine::EndRun(const Start& start, const absl::Status& status) {
  InferenceRunPtr run;
  {
    base::MutexLock lock(mutex_);
    run = std::move(start.lane->run);
  }
  if (run != nullptr) run->Finish(status, start.lane->parts, {});
  FreeLane(start);
}

void Engine::FreeLane(const Start& start) {
  const uint32_t row = start.lane->row;
  {
    base::MutexLock lock(mutex_);
    start.lane->run = nullptr;
    start.lane->taken = false;
    const auto found = models_.find(start.model->id);
    if (found != models_.end()) found->second.used = options_.clock->Now();
  }
  // What waits is begun by the engine's thread: its caller may be one of
  // gRPC's, which has its own request to serve.
  Post([this, model = start.model, row] { Dispatch(model, row); });
}

// ---- the engine's thread ----------------------------------------------------

void Engine::RunThread() {
  setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) + kNiceness);
  for (;;) {
    base::Nanoseconds timeout = kLongestSleep;
    std::vector<std::function<void()>> tasks;
    {
      base::MutexLock lock(mutex_);
      if (stopping_) return;
      tasks.swap(tasks_);
      if (next_deadline_ != InferenceRun::kNoDeadline) {
        timeout = std::clamp<base::Nanoseconds>(
            next_deadline_ - options_.clock->Now(), 0, kLongestSleep);
      }
    }
    for (const auto& task : tasks) task();
    if (!tasks.empty()) timeout = 0;
    for (core::JobCompletion& completion : completions_->Take(timeout)) {
      FinishJob(std::move(completion));
    }
    ExpireLate();
  }
}

void Engine::FinishJob(core::JobCompletion completion) {
  Slot slot;
  InferenceRunPtr run;
  bool again = false;
  {
    base::MutexLock lock(mutex_);
    slot = std::exchange(slots_[completion.slot], {});
    if (slot.lane == nullptr) return;  // a cancel's own answer
    again = absl::IsAborted(completion.status) && !draining_ &&
            slot.lane->run != nullptr && !slot.lane->run->cancelled_ &&
            ++slot.lane->run->attempts_ < kAttempts;
    if (!again) run = std::move(slot.lane->run);
  }
  const Start start{slot.model, slot.lane, false};
  Lane& lane = *slot.lane;
  lane.parts.queue += completion.queue;
  if (again) return SubmitJob(start);  // its inputs are still there
  lane.parts.run = completion.run;
  lane.parts.core = completion.core;
  absl::Status status = std::move(completion.status);
  const bool sync = status.ok() && lane.dma_buf;
  if (sync) {
    status = driver::BeginCpuAccess(lane.fd.get(), driver::CpuAccess::kRead);
  }
  if (run != nullptr) {
    const auto outputs =
        OwnMemory<const std::byte>(lane.outputs, lane.bound.outputs);
    run->Finish(status, lane.parts, outputs);
  }
  if (sync) {
    driver::EndCpuAccess(lane.fd.get(), driver::CpuAccess::kRead).IgnoreError();
  }
  FreeLane(start);
}

void Engine::ExpireLate() {
  std::vector<InferenceRunPtr> late;
  {
    base::MutexLock lock(mutex_);
    const base::Nanoseconds now = options_.clock->Now();
    if (now < next_deadline_) return;
    next_deadline_ = InferenceRun::kNoDeadline;
    for (auto& [id, model] : models_) {
      for (Row& row : model.rows) {
        for (InferenceRunPtr& run :
             row.waiting.TakeLate(now, &next_deadline_)) {
          late.push_back(std::move(run));
        }
      }
    }
    waiting_ -= static_cast<uint32_t>(late.size());
  }
  for (const InferenceRunPtr& run : late) Refuse(run, TooLate());
}

}  // namespace rknnd::transport
