// Runs that are not waited for: rknnd_submit and what belongs to it. Called by
// programs, on any of their threads; structs may be those of an older header.

#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "base/posix/clock.h"
#include "client/include/rknnd.h"
#include "client/rknnrt/call.h"
#include "client/rknnrt/completion_queue.h"
#include "client/rknnrt/copy_fitting.h"
#include "client/rknnrt/sized_struct.h"
#include "client/target/log.h"

namespace rknnd::client {
namespace {

using base::Code;
using base::Expected;
using base::Nanoseconds;

// Runs body(number), whose number is the answer where it did not fail.
template <class Body>
int CallForNumber(const char* function, Body body) {
  int number = RKNN_SUCC;
  const int failed = Call(function, [&]() -> Outcome { return body(&number); });
  return failed != RKNN_SUCC ? failed : number;
}

Outcome Failed(base::Error error) {
  return Failure{std::move(error), Subject::kNone};
}

// Part of a program's daily life: its number says it all.
bool IsOrdinary(Code code) {
  return code == Code::kAborted || code == Code::kCancelled ||
         code == Code::kDeadlineExceeded;
}

Outcome ReadOptions(const rknnd_run_options* options, rknnd_run_options* known,
                    RunOptions* run) {
  *known = {};
  if (options == nullptr) return {};
  if (Outcome checked = ReadStruct(*options, "rknnd_run_options", known);
      !checked.ok()) {
    return checked;
  }
  if ((known->flags & ~RKNND_RUN_SHARED) != 0) {
    return Failed(
        {Code::kInvalidArgument, "flags " + std::to_string(known->flags) +
                                     " has bits that are no RKNND_RUN_*"});
  }
  if ((known->flags & RKNND_RUN_SHARED) != 0 && known->frame_id == 0) {
    return Failed({Code::kInvalidArgument,
                   "RKNND_RUN_SHARED needs the frame_id that all readers of "
                   "the frame give"});
  }
  if (known->timeout_ms < 0) {
    return Failed({Code::kInvalidArgument,
                   "timeout_ms " + std::to_string(known->timeout_ms) +
                       " is negative: 0 is the daemon's limit"});
  }
  if (known->use_fence_in != 0 && known->fence_in < 0) {
    return Failed(
        {Code::kInvalidArgument, "fence_in " + std::to_string(known->fence_in) +
                                     " is no descriptor to wait for"});
  }
  if (known->callback != nullptr && known->queue == 0) {
    return Failed({Code::kInvalidArgument,
                   "a callback needs a queue, whose rknnd_dispatch calls it"});
  }
  run->frame = known->frame_id;
  run->deadline_ns = known->deadline_ns;
  run->timeout_ms = static_cast<uint32_t>(known->timeout_ms);
  run->set = known->set;
  run->shared = (known->flags & RKNND_RUN_SHARED) != 0;
  if (known->use_fence_in != 0) run->fence_in = known->fence_in;
  run->fence_out = known->fence_out != nullptr;
  return {};
}

Outcome Submit(uint64_t handle, const rknnd_run_options* options,
               uint64_t* frame_id) {
  Expected<std::shared_ptr<Context>> context =
      Runtime::Get().FindContext(handle);
  if (!context.ok()) {
    return Failure{std::move(context).error(), Subject::kContext};
  }
  rknnd_run_options known;
  RunOptions run;
  if (Outcome checked = ReadOptions(options, &known, &run); !checked.ok())
    return checked;
  Submitted submitted;
  if (known.queue == 0) {
    if (Outcome done = (*context)->Submit(run, &submitted); !done.ok())
      return done;
  } else {
    Expected<std::shared_ptr<CompletionQueue>> queue =
        Runtime::Get().FindQueue(known.queue);
    if (!queue.ok()) return Failed(std::move(queue).error());
    if ((*queue)->target() != &(*context)->target()) {
      return WrongParameter("the queue is another connection's to the NPU");
    }
    if (Outcome done = (*queue)->Submit(
            *context, run, {known.user, known.callback}, &submitted);
        !done.ok()) {
      return done;
    }
  }
  if (known.fence_out != nullptr) {
    *known.fence_out = submitted.fence_out.release();
  }
  if (frame_id != nullptr) *frame_id = submitted.frame;
  return {};
}

Outcome Wait(uint64_t handle, uint64_t frame, int32_t timeout_ms,
             rknnd_completion* completion, uint32_t size, int* number) {
  Expected<std::shared_ptr<Context>> context =
      Runtime::Get().FindContext(handle);
  if (!context.ok()) {
    return Failure{std::move(context).error(), Subject::kContext};
  }
  if (completion != nullptr) CopyFitting(rknnd_completion{}, completion, size);
  const Nanoseconds deadline =
      timeout_ms < 0
          ? std::numeric_limits<Nanoseconds>::max()
          : base::MonotonicClock().Now() + timeout_ms * base::kMillisecond;
  EndedRun ended;
  switch (
      (*context)->Wait(frame == 0 ? WhichRun::kOldest : WhichRun::kThatFrame,
                       frame, deadline, &ended)) {
    case Context::Waited::kEnded:
      break;
    case Context::Waited::kNotYet:
      *number = Report("rknnd_wait",
                       {{Code::kDeadlineExceeded,
                         "frame " + std::to_string(ended.frame) +
                             " has not ended yet: it can be waited for again"},
                        Subject::kContext},
                       LogLevel::kDebug);
      return {};
    case Context::Waited::kNone:
      if (frame == 0) {
        *number = RKNND_ERR_EMPTY;
        return {};
      }
      return Failed({Code::kInvalidArgument,
                     "frame " + std::to_string(frame) +
                         " is not on its way: it was never submitted, or has "
                         "been waited for"});
  }
  rknnd_completion known = {};
  known.context = handle;
  known.frame_id = ended.frame;
  known.code = ToRknnError(ended.code, Subject::kContext);
  known.core = ended.report.core;
  known.queue_ns = ended.report.queue_ns;
  known.run_ns = ended.report.run_ns;
  known.total_ns = ended.report.total_ns;
  known.drops = ended.report.drops;
  known.set = ended.set;
  if (completion != nullptr) CopyFitting(known, completion, size);
  if (ended.code != Code::kOk) {
    *number = Report(
        "rknnd_wait", {{ended.code, std::move(ended.text)}, Subject::kContext},
        IsOrdinary(ended.code) ? LogLevel::kDebug : LogLevel::kError);
  }
  return {};
}

// The call was a success: the completion has the number, and this the words.
void NoteText(const char* function, const CompletionQueue::Taken& taken) {
  if (taken.completion.code != RKNN_SUCC) SetLastError(function, taken.text);
}

Outcome Dispatch(uint64_t handle, uint32_t* called) {
  uint32_t done = 0;
  if (called != nullptr) *called = 0;
  Expected<std::shared_ptr<CompletionQueue>> queue =
      Runtime::Get().FindQueue(handle);
  if (!queue.ok()) return Failed(std::move(queue).error());
  CompletionQueue::Taken taken;
  // As many as are there now: a callback that submits again does not keep the
  // program here.
  for (size_t left = (*queue)->size(); left > 0; --left) {
    const Expected<bool> next = (*queue)->Next(&taken);
    // A callback may destroy the queue; what it had is over then.
    if (!next.ok() || !*next) break;
    if (taken.callback == nullptr) continue;
    NoteText("rknnd_dispatch", taken);
    taken.callback(&taken.completion);
    ++done;
    if (called != nullptr) *called = done;
  }
  return {};
}

}  // namespace
}  // namespace rknnd::client

using rknnd::client::Call;
using rknnd::client::CallForNumber;
using rknnd::client::CallOn;
using rknnd::client::CompletionQueue;
using rknnd::client::Context;
using rknnd::client::Failed;
using rknnd::client::Failure;
using rknnd::client::Outcome;
using rknnd::client::Runtime;
using rknnd::client::Subject;
using rknnd::client::WrongParameter;

extern "C" {

RKNND_API int rknnd_set_io_mem(rknn_context context, uint32_t set,
                               rknn_tensor_mem* memory,
                               rknn_tensor_attr* attr) {
  return CallOn("rknnd_set_io_mem", context, [&](Context& found) -> Outcome {
    if (memory == nullptr || attr == nullptr) {
      return WrongParameter("memory or attr is NULL");
    }
    auto registered = Runtime::Get().FindMemory(memory);
    if (!registered.ok()) return Failed(std::move(registered).error());
    return found.BindMemory(*(*registered)->buffer, *attr, set);
  });
}

RKNND_API int rknnd_submit(rknn_context context,
                           const rknnd_run_options* options,
                           uint64_t* frame_id) {
  return Call("rknnd_submit", [&]() -> Outcome {
    return rknnd::client::Submit(context, options, frame_id);
  });
}

RKNND_API int rknnd_wait(rknn_context context, uint64_t frame_id,
                         int32_t timeout_ms, rknnd_completion* completion,
                         uint32_t size) {
  return CallForNumber("rknnd_wait", [&](int* number) -> Outcome {
    return rknnd::client::Wait(context, frame_id, timeout_ms, completion, size,
                               number);
  });
}

RKNND_API int rknnd_cancel(rknn_context context, uint64_t frame_id,
                           uint32_t* cancelled) {
  if (cancelled != nullptr) *cancelled = 0;
  return CallOn("rknnd_cancel", context, [&](Context& found) -> Outcome {
    const auto count = found.target().Cancel(found.number(), frame_id);
    if (!count.ok()) return Failure{count.error(), Subject::kContext};
    if (cancelled != nullptr) *cancelled = *count;
    return {};
  });
}

RKNND_API int rknnd_queue_create(rknnd_queue* queue) {
  return Call("rknnd_queue_create", [&]() -> Outcome {
    if (queue == nullptr) return WrongParameter("queue is NULL");
    const auto made = Runtime::Get().AddQueue();
    if (!made.ok()) return Failed(made.error());
    *queue = *made;
    return {};
  });
}

RKNND_API int rknnd_queue_fd(rknnd_queue queue) {
  return CallForNumber("rknnd_queue_fd", [&](int* number) -> Outcome {
    const auto found = Runtime::Get().FindQueue(queue);
    if (!found.ok()) return Failed(found.error());
    *number = (*found)->fd();
    return {};
  });
}

RKNND_API int rknnd_queue_next(rknnd_queue queue, rknnd_completion* completion,
                               uint32_t size) {
  return CallForNumber("rknnd_queue_next", [&](int* number) -> Outcome {
    if (completion == nullptr) return WrongParameter("completion is NULL");
    const auto found = Runtime::Get().FindQueue(queue);
    if (!found.ok()) return Failed(found.error());
    CompletionQueue::Taken taken;
    const auto next = (*found)->Next(&taken);
    if (!next.ok()) return Failed(next.error());
    if (!*next) {
      *number = RKNND_ERR_EMPTY;
      return {};
    }
    rknnd::client::NoteText("rknnd_queue_next", taken);
    rknnd::client::CopyFitting(taken.completion, completion, size);
    return {};
  });
}

RKNND_API int rknnd_dispatch(rknnd_queue queue, uint32_t* called) {
  return Call("rknnd_dispatch", [&]() -> Outcome {
    return rknnd::client::Dispatch(queue, called);
  });
}

RKNND_API int rknnd_queue_destroy(rknnd_queue queue) {
  return Call("rknnd_queue_destroy", [&]() -> Outcome {
    const auto removed = Runtime::Get().RemoveQueue(queue);
    if (!removed.ok()) return Failed(removed.error());
    (*removed)->Close();
    return {};
  });
}

}  // extern "C"
