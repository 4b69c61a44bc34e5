// Context's runs: those that rknn_run waits for, those that are started, and
// whose outputs rknn_outputs_get means. Called on the program's threads.
//
// A started run has a record until its end was told: by rknnd_wait or
// rknn_wait, or by the queue that it was submitted with. The oldest that nobody
// asks for are forgotten in time. Its sums are counted once, by whoever looks
// first after its end.

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "base/posix/hot_path.h"
#include "client/rknnrt/context.h"

namespace rknnd::client {

using base::Code;
using base::Error;
using base::Expected;
using base::Nanoseconds;

namespace {

// Runs that have ended and that nobody has asked for: more than can be on their
// way at a time.
constexpr size_t kRemembered = 256;
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
  for (uint32_t i = 0; i < inputs_.size(); ++i) {
    if (PortOf(set, Direction::kInput, i).source != Source::kNone) continue;
    return Fail(Code::kFailedPrecondition,
                std::string("input '") + model_->inputs[i].name +
                    "' has no data: call rknn_inputs_set or rknn_set_io_mem "
                    "before rknn_run",
                Subject::kInput);
  }
  // What a set leaves unbound is set 0's.
  for (uint32_t i = 0; i < outputs_.size(); ++i) {
    if (PortOf(set, Direction::kOutput, i).source != Source::kNone) continue;
    if (Outcome bound = BindOwnOutputs(); !bound.ok()) return bound;
    break;
  }
  if (set == 0) runnable_ = true;
  return {};
}

bool Context::IsAsync() const {
  if ((flags_ & RKNN_FLAG_ASYNC_MASK) == 0) return false;
  const auto own = [](const Port& port) {
    return port.source != Source::kProgram;
  };
  return std::all_of(inputs_.begin(), inputs_.end(), own) &&
         std::all_of(outputs_.begin(), outputs_.end(), own);
}

// ---- the sums ---------------------------------------------------------------

void Context::Count(uint64_t serial, uint64_t frame, const RunReport& report,
                    uint64_t converted_in, uint64_t converted_out) {
  copies_.to_device_conversion.fetch_add(converted_in,
                                         std::memory_order_relaxed);
  copies_.from_device_conversion.fetch_add(converted_out,
                                           std::memory_order_relaxed);
  if (serial > last_run_.serial) last_run_ = {frame, serial, report};
}

void Context::CountEnded() {
  for (Started& started : started_) {
    if (started.counted || !target_->Look(*started.run)) continue;
    started.counted = true;
    if (started.run->code == Code::kOk) {
      Count(started.serial, started.frame, started.run->report,
            started.converted_in, started.converted_out);
    }
  }
  std::erase_if(started_, [](const Started& started) {
    return started.counted && started.abandoned;
  });
  while (started_.size() > kRemembered && started_.front().counted &&
         !started_.front().queued) {
    started_.erase(started_.begin());
  }
}

LastRun Context::last_run() {
  const base::MutexLock lock(mutex_);
  CountEnded();
  return last_run_;
}

uint64_t Context::runs() const {
  const base::MutexLock lock(mutex_);
  return runs_;
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
  uint64_t converted_in = 0;
  uint64_t converted_out = 0;
  {
    const base::MutexLock lock(mutex_);
    request.set = in_bank_;
    if (Outcome ready = CheckRunnable(request.set); !ready.ok()) return ready;
  }
  if (fence_in) {
    Expected<uint32_t> fence = target_->RegisterFence(*fence_in);
    if (!fence.ok()) return Failure{std::move(fence).error(), Subject::kNone};
    request.fence_in = *fence;
  }
  {
    const base::MutexLock lock(mutex_);
    for (uint32_t i = 0; i < inputs_.size(); ++i) {
      converted_in += PortOf(request.set, Direction::kInput, i).converted;
    }
    for (const Port& port : outputs_) converted_out += port.converted;
    request.frame = ++runs_;
  }
  Expected<RunReport> report = target_->Run(request);
  if (!report.ok()) {
    const base::MutexLock lock(mutex_);
    failed_ = request.frame;
    failure_ = report.error();
    return Failure{std::move(report).error(), Subject::kContext};
  }
  if (extend != nullptr) extend->frame_id = request.frame;
  const base::MutexLock lock(mutex_);
  CountEnded();
  Count(request.frame, request.frame, *report, converted_in, converted_out);
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
  CountEnded();
  Started started;
  started.in_bank = static_cast<uint8_t>(in_bank_);
  request.set = options.set != 0 ? options.set : in_bank_;
  if (Outcome ready = CheckRunnable(request.set); !ready.ok())
    return give_back(ready);
  if (vendor && IsAsync()) {
    if (out_bank_ == 0) {
      if (Outcome bound = BindSecondOutputs(); !bound.ok())
        return give_back(bound);
    }
    out_bank_ ^= 1;
    started.out_bank = static_cast<uint8_t>(out_bank_);
    request.set += 2 * out_bank_;
    started.async = true;
  }
  started.set = options.set;
  for (uint32_t i = 0; i < inputs_.size(); ++i) {
    started.converted_in += PortOf(request.set, Direction::kInput, i).converted;
  }
  for (uint32_t i = 0; i < outputs_.size(); ++i) {
    started.converted_out +=
        PortOf(request.set, Direction::kOutput, i).converted;
  }
  const uint64_t serial = runs_ + 1;
  request.frame = options.frame != 0 ? options.frame : serial;
  started_.reserve(started_.size() + 1);
  Expected<RunRef> run = target_->Start(request);
  if (!run.ok()) return Failure{std::move(run).error(), Subject::kContext};
  runs_ = serial;
  started.run = *run;
  started.frame = request.frame;
  started.serial = serial;
  started.queued = options.notice != 0;
  previous_ = std::exchange(newest_, started);
  started_.push_back(std::move(started));
  *submitted = {*std::move(run), request.frame, serial,
                std::move(fence_out.fd)};
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
  bool full = false;
  {
    const base::MutexLock lock(mutex_);
    async = IsAsync();
    if (async && !started_.empty()) {
      CountEnded();
      const auto on_its_way = [](const Started& started) {
        return !started.counted;
      };
      full = static_cast<size_t>(std::count_if(started_.begin(), started_.end(),
                                               on_its_way)) >= kAsyncRuns;
      if (full) {
        oldest =
            std::find_if(started_.begin(), started_.end(), on_its_way)->run;
      }
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
  if (full && !target_->Await(*oldest, patience)) {
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

Context::Waited Context::Wait(Which which, uint64_t frame, Nanoseconds deadline,
                              EndedRun* ended) {
  Started found;
  {
    const base::MutexLock lock(mutex_);
    CountEnded();
    const auto fits = [&](const Started& started) {
      if (started.abandoned) return false;
      if (which == Which::kThatFrame) return started.frame == frame;
      return which == Which::kNewest || !started.queued;
    };
    auto it = std::find_if(started_.begin(), started_.end(), fits);
    if (which == Which::kNewest && it != started_.end()) {
      it = std::prev(started_.end());
      if (!newest_ || it->serial != newest_->serial || !fits(*it)) {
        it = started_.end();
      }
    }
    if (it == started_.end()) return Waited::kNone;
    found = *it;
  }
  if (!target_->Await(*found.run, deadline)) {
    ended->frame = found.frame;
    return Waited::kNotYet;
  }
  const base::MutexLock lock(mutex_);
  CountEnded();
  if (!found.queued) {
    std::erase_if(started_, [&](const Started& started) {
      return started.serial == found.serial;
    });
  }
  waited_for_ = std::max(waited_for_, found.serial);
  *ended = {found.frame, found.set, found.run->code, found.run->text,
            found.run->report};
  return Waited::kEnded;
}

void Context::AwaitRuns(uint64_t serial) {
  for (;;) {
    RunRef run;
    {
      const base::MutexLock lock(mutex_);
      CountEnded();
      const auto next =
          std::find_if(started_.begin(), started_.end(),
                       [](const Started& started) { return !started.counted; });
      if (next == started_.end() || next->serial > serial) return;
      run = next->run;
    }
    target_->Await(*run, kForever);
  }
}

void Context::AwaitRuns() { AwaitRuns(runs()); }

void Context::MarkReported(uint64_t serial) {
  const base::MutexLock lock(mutex_);
  CountEnded();
  std::erase_if(started_, [&](const Started& started) {
    return started.serial == serial;
  });
}

void Context::MarkAbandoned(uint64_t serial) {
  const base::MutexLock lock(mutex_);
  for (Started& started : started_) {
    if (started.serial == serial) started.abandoned = true;
  }
  CountEnded();
}

bool Context::HasPrevious() const {
  return newest_ && newest_->async && previous_ && previous_->async;
}

Outcome Context::AwaitOutputs(Started* shown) {
  for (;;) {
    {
      const base::MutexLock lock(mutex_);
      if (!newest_ || newest_->serial != runs_) {
        // The last one was waited for by rknn_run. One that was given up may
        // have written to the outputs, and may still: they are nobody's.
        if (failed_ != 0 && failed_ == runs_) {
          return Failure{failure_, Subject::kContext};
        }
        CountEnded();
        *shown = {};
        shown->serial = last_run_.serial;
        shown->frame = last_run_.frame;
        return {};
      }
      *shown = HasPrevious() && waited_for_ < newest_->serial ? *previous_
                                                              : *newest_;
    }
    target_->Await(*shown->run, kForever);
    const base::MutexLock lock(mutex_);
    CountEnded();
    // Another thread may have gone on meanwhile.
    const bool still = (newest_ && newest_->serial == shown->serial) ||
                       (HasPrevious() && previous_->serial == shown->serial);
    if (!still) continue;
    if (shown->run->code == Code::kOk) return {};
    return Failure{{shown->run->code, shown->run->text}, Subject::kContext};
  }
}

}  // namespace rknnd::client
