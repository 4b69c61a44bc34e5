// The C API's contexts and runs: init, duplicate, destroy, inputs, run,
// outputs. Called by programs, on any of their threads; pointers are taken as
// the API says, everything behind a handle, index or size is checked.

#include "client/include/rknn_api.h"

#include <cstddef>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "base/posix/clock.h"
#include "client/rknnrt/call.h"
#include "client/rknnrt/context/context.h"
#include "client/rknnrt/context/make_context.h"
#include "client/rknnrt/custom/custom_operators.h"
#include "client/rknnrt/custom/plugins.h"
#include "client/rknnrt/model_buffer.h"
#include "client/rknnrt/profile.h"
#include "client/rknnrt/runtime.h"
#include "client/rknnrt/tensor.h"
#include "client/target/log.h"
#include "client/target/model_source.h"

namespace rknnd::client {
namespace {

using base::Code;
using base::Error;
using base::Expected;

Expected<std::shared_ptr<ModelSource>> OpenModel(
    const void* model, uint32_t size, const rknn_init_extend* extend) {
  if (size > 0) {
    return ModelSource::OfBytes(
        std::span(static_cast<const std::byte*>(model), size), std::nullopt);
  }
  std::optional<ModelSlice> slice;
  if (extend != nullptr && extend->real_model_offset >= 0 &&
      extend->real_model_size > 0) {
    slice = ModelSlice{static_cast<uint64_t>(extend->real_model_offset),
                       extend->real_model_size};
  }
  return ModelSource::OfFile(static_cast<const char*>(model), slice);
}

// The context whose weights are to be shared. Of `extend` only ctx is read.
Outcome FindOwner(const rknn_init_extend* extend, const Target& target,
                  uint32_t* number) {
  if (extend == nullptr) {
    return WrongParameter(
        "RKNN_FLAG_SHARE_WEIGHT_MEM needs, in extend->ctx, the context of the "
        "model that has the weights");
  }
  Expected<std::shared_ptr<Context>> owner =
      Runtime::Get().FindContext(extend->ctx);
  if (!owner.ok()) {
    Error error = std::move(owner).error();
    error.message =
        "extend->ctx, whose weights are to be shared: " + error.message;
    return Failure{std::move(error), Subject::kContext};
  }
  if (&(*owner)->target() != &target) {
    return WrongParameter(
        "extend->ctx belongs to another daemon: weights are shared within one");
  }
  if (((*owner)->flags() & RKNN_FLAG_SHARE_WEIGHT_MEM) != 0) {
    return WrongParameter(
        "extend->ctx shares the weights of another context itself: give that "
        "one, whose model has the weights");
  }
  *number = (*owner)->number();
  return {};
}

// Nobody's, where it was never begun.
Outcome Wait(Context& context, rknn_run_extend* extend) {
  const uint64_t frame = extend == nullptr ? 0 : extend->frame_id;
  base::Nanoseconds deadline = std::numeric_limits<base::Nanoseconds>::max();
  if (extend != nullptr && extend->timeout_ms > 0) {
    deadline =
        base::MonotonicClock().Now() + extend->timeout_ms * base::kMillisecond;
  }
  EndedRun ended;
  switch (context.Wait(frame == 0 ? WhichRun::kNewest : WhichRun::kThatFrame,
                       frame, deadline, &ended)) {
    case Context::Waited::kEnded:
      break;
    case Context::Waited::kNotYet:
      return Failure{{Code::kDeadlineExceeded,
                      "frame " + std::to_string(ended.frame) +
                          " has not ended yet: it can be waited for again"},
                     Subject::kContext};
    case Context::Waited::kNone:
      // rknn_run has waited for it, or somebody else.
      if (frame <= context.runs()) return {};
      return Failure{
          {Code::kInvalidArgument, "frame " + std::to_string(frame) +
                                       " was never begun: the last one is " +
                                       std::to_string(context.runs())},
          Subject::kNone};
  }
  if (extend != nullptr) extend->frame_id = ended.frame;
  if (ended.code == Code::kOk) return {};
  return Failure{{ended.code, std::move(ended.text)}, Subject::kContext};
}

Outcome Init(rknn_context* context, const void* model, uint32_t size,
             uint32_t flag, const rknn_init_extend* extend) {
  if (context == nullptr) return WrongParameter("context is NULL");
  const bool zero_copy = (flag & RKNN_FLAG_MODEL_BUFFER_ZERO_COPY) != 0;
  if (model == nullptr && !zero_copy) {
    return Failure{{Code::kInvalidArgument,
                    "model is NULL: give the bytes of a model and their "
                    "number, or a path and size 0"},
                   Subject::kModel};
  }
  // The target first: without a daemon no model needs to be read.
  Expected<std::shared_ptr<Target>> target = Runtime::Get().target();
  if (!target.ok()) return Failure{std::move(target).error(), Subject::kNone};
  ContextRequest request;
  request.flags = flag;
  if ((flag & RKNN_FLAG_SHARE_WEIGHT_MEM) != 0) {
    if (Outcome checked = FindOwner(extend, **target, &request.weights_of);
        !checked.ok()) {
      return checked;
    }
  }
  ModelOrigin origin;
  // The program's memory or our mapping of it: there until the end of the call.
  std::optional<ModelBuffer> buffer;
  if (zero_copy && (size > 0 || model == nullptr)) {
    Expected<ModelBuffer> opened = ModelBuffer::Open(model, size, extend);
    if (!opened.ok()) {
      return Failure{std::move(opened).error(), Subject::kModel};
    }
    buffer = *std::move(opened);
    origin.memory = buffer->memory();
  }
  Expected<std::shared_ptr<ModelSource>> source =
      buffer.has_value() ? ModelSource::OfBytes(buffer->bytes(), std::nullopt)
                         : OpenModel(model, size, extend);
  if (!source.ok()) return Failure{std::move(source).error(), Subject::kModel};
  uint32_t handle = 0;
  if (Outcome done = MakeContext(request, *source, origin, *target, &handle);
      !done.ok()) {
    return done;
  }
  UsePlugins(handle);
  *context = handle;
  return {};
}

}  // namespace
}  // namespace rknnd::client

using rknnd::client::Call;
using rknnd::client::CallOn;
using rknnd::client::Context;
using rknnd::client::Failure;
using rknnd::client::Outcome;
using rknnd::client::Subject;
using rknnd::client::ToOutcome;
using rknnd::client::WrongParameter;

extern "C" {

RKNND_API int rknn_init(rknn_context* context, void* model, uint32_t size,
                        uint32_t flag, rknn_init_extend* extend) {
  return Call("rknn_init", [&]() -> Outcome {
    return rknnd::client::Init(context, model, size, flag, extend);
  });
}

RKNND_API int rknn_dup_context(rknn_context* context_in,
                               rknn_context* context_out) {
  if (context_in == nullptr || context_out == nullptr) {
    return Call("rknn_dup_context", []() -> Outcome {
      return WrongParameter("context_in or context_out is NULL");
    });
  }
  return CallOn(
      "rknn_dup_context", *context_in, [&](Context& original) -> Outcome {
        if (Outcome allowed = original.CheckLimit(
                rknnd_v1_DeviceLimit_LIMIT_NO_DUP_CONTEXT,
                "has no rknn_dup_context: call rknn_init again");
            !allowed.ok()) {
          return allowed;
        }
        rknnd::client::ContextRequest request;
        request.flags = original.flags();
        request.duplicate_of = original.number();
        uint32_t handle = 0;
        if (Outcome done =
                rknnd::client::MakeContext(request, nullptr, original.origin(),
                                           original.shared_target(), &handle);
            !done.ok()) {
          return done;
        }
        if (const auto made = rknnd::client::Runtime::Get().FindContext(handle);
            made.ok()) {
          (*made)->set_attr_size(original.attr_size());
        }
        rknnd::client::UsePlugins(handle);
        *context_out = handle;
        return {};
      });
}

RKNND_API int rknn_destroy(rknn_context context) {
  return Call("rknn_destroy", [&]() -> Outcome {
    const auto found = rknnd::client::Runtime::Get().FindContext(context);
    if (found.ok() && rknnd::client::IsInCallback(**found)) {
      return WrongParameter(
          "a callback of the context's own custom operator may not destroy it");
    }
    auto removed = rknnd::client::Runtime::Get().RemoveContext(context);
    if (!removed.ok()) {
      return Failure{std::move(removed).error(), Subject::kContext};
    }
    return ToOutcome((*removed)->Destroy(), Subject::kContext);
  });
}

RKNND_API int rknn_inputs_set(rknn_context context, uint32_t n_inputs,
                              rknn_input inputs[]) {
  return CallOn("rknn_inputs_set", context, [&](Context& found) -> Outcome {
    if (inputs == nullptr) return WrongParameter("inputs is NULL");
    return found.SetInputs(std::span(inputs, n_inputs));
  });
}

RKNND_API int rknn_run(rknn_context context, rknn_run_extend* extend) {
  return CallOn("rknn_run", context, [&](Context& found) -> Outcome {
    return rknnd::client::RunExtended(found, extend);
  });
}

RKNND_API int rknn_wait(rknn_context context, rknn_run_extend* extend) {
  return CallOn("rknn_wait", context, [&](Context& found) -> Outcome {
    return rknnd::client::Wait(found, extend);
  });
}

RKNND_API int rknn_outputs_get(rknn_context context, uint32_t n_outputs,
                               rknn_output outputs[],
                               rknn_output_extend* extend) {
  return CallOn("rknn_outputs_get", context, [&](Context& found) -> Outcome {
    if (outputs == nullptr) return WrongParameter("outputs is NULL");
    return found.GetOutputs(std::span(outputs, n_outputs), extend);
  });
}

RKNND_API int rknn_outputs_release(rknn_context context, uint32_t n_ouputs,
                                   rknn_output outputs[]) {
  return CallOn("rknn_outputs_release", context,
                [&](Context& found) -> Outcome {
                  if (outputs == nullptr && n_ouputs != 0) {
                    return WrongParameter("outputs is NULL");
                  }
                  found.ReleaseOutputs(std::span(outputs, n_ouputs));
                  return {};
                });
}

RKNND_API int rknn_set_core_mask(rknn_context context,
                                 rknn_core_mask core_mask) {
  return CallOn("rknn_set_core_mask", context, [&](Context& found) -> Outcome {
    return found.SetCoreMask(rknnd::client::RawNumber(core_mask));
  });
}

}  // extern "C"
