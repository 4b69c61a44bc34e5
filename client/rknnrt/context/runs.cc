// Context's runs: those that rknn_run waits for, those that are started, and
// whose outputs rknn_outputs_get means. Called on the program's threads.

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "base/posix/hot_path.h"
#include "client/rknnrt/context/context.h"
#include "client/rknnrt/custom/custom_operators.h"

namespace rknnd::client {

using base::Code;
using base::Error;
using base::Expected;
using base::Nanoseconds;

namespace {

// The target has bounds of its own.
constexpr Nanoseconds kForever = std::numeric_limits<Nanoseconds>::max();
// RKNN_FLAG_ASYNC_MASK: one is computed while the next one is prepared.
constexpr size_t kAsyncRuns = 2;

}  // namespace

Outcome Context::CheckSet(uint32_t set) const {
  if (set >= RKNND_SETS) {
    return Fail(Code::kInvalidArgument,
                "set " + std::to_string(set) + " does not exist: there are " +
                    std::to_string(RKNND_SETS) + ", from 0",
                Subject::kNone);
  }
  if (set != 0 && (flags_ & RKNN_FLAG_ASYNC_MASK) != 0) {
    return Fail(Code::kInvalidArgument,
                "with RKNN_FLAG_ASYNC_MASK the sets of bindings are the "
                "library's: open the context without it to use set " +
                    std::to_string(set),
                Subject::kNone);
  }
  return {};
}

Outcome Context::CheckRunnable(uint32_t set) {
  if (runnable_ && set == 0) return {};
  if ((flags_ & RKNN_FLAG_COLLECT_MODEL_INFO_ONLY) != 0) {
    return Fail(Code::kFailedPrecondition,
                "the context was opened with RKNN_FLAG_COLLECT_MODEL_INFO_ONLY "
                "and answers questions about sizes only",
                Subject::kContext);
  }
  if (!shape_chosen_) return NoShape();
  if (const auto input = ports_.FirstUnbound(set, Direction::kInput)) {
    return Fail(Code::kFailedPrecondition,
                std::string("input '") + model_->inputs[*input].name +
                    "' has no data: call rknn_inputs_set or rknn_set_io_mem "
                    "before rknn_run",
                Subject::kInput);
  }
  if (ports_.FirstUnbound(set, Direction::kOutput)) {
    if (Outcome allowed = CheckGeneralPath(); !allowed.ok()) return allowed;
    if (Outcome bound = own_.BindOutputs(); !bound.ok()) return bound;
  }
  if (set == 0) runnable_ = true;
  return {};
}

bool Context::IsAsync() const {
  return (flags_ & RKNN_FLAG_ASYNC_MASK) != 0 && ports_.IsAllOwn() &&
         custom_ == nullptr;
}

RunBindings Context::BindingsOf(uint32_t set) const {
  RunBindings bindings;
  for (uint32_t i = 0; i < ports_.inputs(); ++i) {
    bindings.inputs.push_back(ports_.Of(set, Direction::kInput, i).binding);
  }
  for (uint32_t i = 0; i < ports_.outputs(); ++i) {
    bindings.outputs.push_back(ports_.Of(set, Direction::kOutput, i).binding);
  }
  return bindings;
}

LastRun Context::last_run() {
  const base::MutexLock lock(mutex_);
  record_.CountEnded();
  return record_.last();
}

uint64_t Context::runs() const {
  const base::MutexLock lock(mutex_);
  return record_.begun();
}

// ---- beginning --------------------------------------------------------------

Outcome Context::RunBlocking(rknn_run_extend* extend,
                             std::optional<int> fence_in) {
  RunRequest request;
  request.context = number_;
  if (extend != nullptr) {
    request.timeout_ms =
        static_cast<uint32_t>(std::max<int32_t>(extend->timeout_ms, 0));
  }
  Conversions conversions;
  if (IsInCallback(*this)) {
    return Fail(Code::kFailedPrecondition,
                "a callback of the context's own custom operator may not run "
                "it",
                Subject::kContext);
  }
  {
    const base::MutexLock lock(mutex_);
    request.set = own_.in_bank();
    if (Outcome ready = CheckRunnable(request.set); !ready.ok()) return ready;
  }
  if (fence_in) {
    Expected<uint32_t> fence = target_->RegisterFence(*fence_in);
    if (!fence.ok()) return Failure{std::move(fence).error(), Subject::kNone};
    request.fence_in = *fence;
  }
  std::shared_ptr<CustomOperators> custom;
  RunBindings bindings;
  {
    const base::MutexLock lock(mutex_);
    conversions = ports_.ConversionsOf(request.set);
    request.frame = record_.BeginWaited();
    custom = custom_;
    if (custom != nullptr) bindings = BindingsOf(request.set);
  }
  Expected<RunReport> report = custom == nullptr
                                   ? target_->Run(request)
                                   : custom->Run(request, bindings);
  if (!report.ok()) {
    const base::MutexLock lock(mutex_);
    record_.FailWaited(request.frame, report.error());
    return Failure{std::move(report).error(), Subject::kContext};
  }
  if (extend != nullptr) extend->frame_id = request.frame;
  const base::MutexLock lock(mutex_);
  record_.EndWaited(request.frame, *report, conversions);
  return {};
}

Outcome Context::StartRun(const RunOptions& options, bool vendor,
                          Submitted* submitted) {
  RunRequest request;
  request.context = number_;
  request.timeout_ms = options.timeout_ms;
  request.deadline_ns = options.deadline_ns;
  request.shared = options.shared;
  request.notice = options.notice;
  // The socket first: the lock is not held while the daemon is asked for what
  // is not the context's.
  if (options.fence_in) {
    Expected<uint32_t> fence = target_->RegisterFence(*options.fence_in);
    if (!fence.ok()) return Failure{std::move(fence).error(), Subject::kNone};
    request.fence_in = *fence;
  }
  FenceOut fence_out;
  if (options.fence_out) {
    Expected<FenceOut> made = target_->MakeFence();
    if (!made.ok()) {
      target_->ReleaseFence(request.fence_in);
      return Failure{std::move(made).error(), Subject::kNone};
    }
    fence_out = *std::move(made);
    request.fence_out = fence_out.number;
  }
  const auto give_back = [&](Outcome failure) {
    target_->ReleaseFence(request.fence_in);
    target_->ReleaseFence(request.fence_out);
    return failure;
  };
  const base::MutexLock lock(mutex_);
  if (custom_ != nullptr) {
    return give_back(Fail(Code::kUnimplemented,
                          "a context with custom operators runs by rknn_run "
                          "alone, which waits for its end",
                          Subject::kContext));
  }
  record_.CountEnded();
  RecordedRun started;
  started.set = options.set;
  started.in_bank = static_cast<uint8_t>(own_.in_bank());
  request.set = options.set != 0 ? options.set : own_.in_bank();
  if (Outcome ready = CheckRunnable(request.set); !ready.ok())
    return give_back(ready);
  if (vendor && IsAsync()) {
    if (Outcome turned = own_.TurnOutputs(); !turned.ok())
      return give_back(turned);
    started.out_bank = static_cast<uint8_t>(own_.out_bank());
    started.async = true;
    request.set += 2 * own_.out_bank();
  }
  started.conversions = ports_.ConversionsOf(request.set);
  started.serial = record_.begun() + 1;
  request.frame = options.frame != 0 ? options.frame : started.serial;
  record_.Reserve();
  Expected<RunRef> run = target_->Start(request);
  if (!run.ok()) return Failure{std::move(run).error(), Subject::kContext};
  started.run = *run;
  started.frame = request.frame;
  started.queued = options.notice != 0;
  *submitted = {*std::move(run), request.frame, started.serial,
                std::move(fence_out.fd)};
  record_.Add(std::move(started));
  return {};
}

Outcome Context::Submit(const RunOptions& options, Submitted* submitted) {
  if (Outcome checked = CheckSet(options.set); !checked.ok()) return checked;
  return StartRun(options, false, submitted);
}

RKNND_HOT_PATH Outcome Context::Run(rknn_run_extend* extend) {
  const bool wants_out = (flags_ & RKNN_FLAG_FENCE_OUT_OUTSIDE) != 0;
  std::optional<int> fence_in;
  if ((flags_ & RKNN_FLAG_FENCE_IN_OUTSIDE) != 0) {
    if (extend == nullptr || extend->fence_fd < 0) {
      return Fail(
          Code::kInvalidArgument,
          "the context was opened with RKNN_FLAG_FENCE_IN_OUTSIDE: "
          "extend->fence_fd must be a descriptor to wait for, and is " +
              std::string(extend == nullptr ? "missing (extend is NULL)"
                                            : std::to_string(extend->fence_fd)),
          Subject::kNone);
    }
    fence_in = extend->fence_fd;
  }
  if (wants_out && extend == nullptr) {
    return Fail(Code::kInvalidArgument,
                "the context was opened with RKNN_FLAG_FENCE_OUT_OUTSIDE: "
                "extend, whose fence_fd gets the fence, is NULL",
                Subject::kNone);
  }
  bool async = false;
  RunRef oldest;
  {
    const base::MutexLock lock(mutex_);
    async = IsAsync();
    if (async) {
      record_.CountEnded();
      if (record_.OnTheirWay() >= kAsyncRuns) oldest = record_.OldestOnItsWay();
    }
  }
  const bool non_block = extend != nullptr && extend->non_block != 0;
  if (!async && !non_block && !wants_out) return RunBlocking(extend, fence_in);

  RunOptions options;
  options.fence_in = fence_in;
  options.fence_out = wants_out;
  Nanoseconds patience = kForever;
  // A limit of what blocks: of a run that does not, rknn_wait's. It would end
  // such a run for who looks after it from time to time.
  if (extend != nullptr && extend->timeout_ms > 0) {
    patience =
        base::MonotonicClock().Now() + extend->timeout_ms * base::kMillisecond;
  }
  if (oldest && !target_->Await(*oldest, patience)) {
    return Fail(Code::kDeadlineExceeded,
                "two runs are on their way, as many as RKNN_FLAG_ASYNC_MASK "
                "allows, and none ended in time",
                Subject::kContext);
  }
  Submitted submitted;
  if (Outcome done = StartRun(options, true, &submitted); !done.ok())
    return done;
  if (extend != nullptr) {
    extend->frame_id = submitted.frame;
    if (wants_out) extend->fence_fd = submitted.fence_out.release();
  }
  return {};
}

// ---- ends -------------------------------------------------------------------

Context::Waited Context::Wait(WhichRun which, uint64_t frame,
                              Nanoseconds deadline, EndedRun* ended) {
  std::optional<RecordedRun> found;
  {
    const base::MutexLock lock(mutex_);
    record_.CountEnded();
    found = record_.Find(which, frame);
  }
  if (!found) return Waited::kNone;
  if (!target_->Await(*found->run, deadline)) {
    ended->frame = found->frame;
    return Waited::kNotYet;
  }
  const base::MutexLock lock(mutex_);
  record_.Waited(*found);
  *ended = {found->frame, found->set, found->run->code, found->run->text,
            found->run->report};
  return Waited::kEnded;
}

void Context::AwaitRuns(uint64_t serial) {
  for (;;) {
    RunRef run;
    {
      const base::MutexLock lock(mutex_);
      record_.CountEnded();
      run = record_.OldestOnItsWay(serial);
    }
    if (!run) return;
    target_->Await(*run, kForever);
  }
}

void Context::AwaitRuns() { AwaitRuns(runs()); }

void Context::MarkReported(uint64_t serial) {
  const base::MutexLock lock(mutex_);
  record_.Forget(serial);
}

void Context::MarkAbandoned(uint64_t serial) {
  const base::MutexLock lock(mutex_);
  record_.Abandon(serial);
}

Outcome Context::AwaitOutputs(RecordedRun* shown) {
  for (;;) {
    {
      const base::MutexLock lock(mutex_);
      Expected<RecordedRun> outputs = record_.OutputsRun();
      if (!outputs.ok()) {
        return Failure{std::move(outputs).error(), Subject::kContext};
      }
      *shown = *std::move(outputs);
    }
    if (!shown->run) return {};
    target_->Await(*shown->run, kForever);
    const base::MutexLock lock(mutex_);
    record_.CountEnded();
    // Another thread may have gone on meanwhile.
    if (!record_.IsOutputsRun(shown->serial)) continue;
    if (shown->run->code == Code::kOk) return {};
    return Failure{{shown->run->code, shown->run->text}, Subject::kContext};
  }
}

}  // namespace rknnd::client
