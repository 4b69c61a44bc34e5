// rknnd's own functions beside the vendor's. Called by programs, on any of
// their threads.

#include <algorithm>
#include <cstring>

#include "client/include/rknnd.h"
#include "client/rknnrt/buffer.h"
#include "client/rknnrt/call.h"
#include "client/rknnrt/context/make_context.h"
#include "client/rknnrt/copy_fitting.h"
#include "client/rknnrt/profile.h"
#include "client/rknnrt/runtime.h"
#include "client/rknnrt/version.h"
#include "client/target/log.h"
#include "client/target/model_token.h"
#include "client/target/progress.h"

namespace {

// Found with `strings`; nothing refers to it.
[[gnu::used, gnu::retain]] const char kVersionText[] =
    "librknnrt version: " RKNND_CLIENT_API_VERSION;

}  // namespace

using rknnd::client::CallOn;
using rknnd::client::Context;
using rknnd::client::CopyFitting;
using rknnd::client::Failure;
using rknnd::client::Outcome;
using rknnd::client::Runtime;
using rknnd::client::Subject;
using rknnd::client::WrongParameter;

extern "C" {

RKNND_API uint32_t rknnd_version(void) { return RKNND_VERSION; }

RKNND_API const char* rknnd_version_string(void) {
  return RKNND_CLIENT_VERSION;
}

RKNND_API const char* rknnd_last_error(void) {
  return rknnd::client::LastError();
}

RKNND_API int rknnd_query_copies(rknn_context context,
                                 rknnd_copy_counters* counters, uint32_t size) {
  return CallOn("rknnd_query_copies", context, [&](Context& found) -> Outcome {
    if (counters == nullptr) return WrongParameter("counters is NULL");
    (void)found.last_run();  // counts the runs that have ended meanwhile
    const rknnd::client::CopyCounters& copies = found.copies();
    rknnd_copy_counters known = {};
    known.to_device_inputs_set = copies.to_device_inputs_set.load();
    known.to_device_conversion = copies.to_device_conversion.load();
    known.from_device_outputs_get = copies.from_device_outputs_get.load();
    known.from_device_conversion = copies.from_device_conversion.load();
    CopyFitting(known, counters, size);
    return {};
  });
}

RKNND_API int rknnd_query_buffer_key(rknn_context context,
                                     rknn_tensor_mem* memory,
                                     rknnd_buffer_key* key, uint32_t size) {
  return CallOn(
      "rknnd_query_buffer_key", context, [&](Context& found) -> Outcome {
        if (key == nullptr) return WrongParameter("key is NULL");
        const auto known = Runtime::Get().FindMemory(memory);
        if (!known.ok()) return Failure{known.error(), Subject::kNone};
        const rknnd::client::Buffer& buffer = *(*known)->buffer;
        if (buffer.target() != &found.target()) {
          return WrongParameter("memory is not of this context's daemon");
        }
        const auto named = buffer.Key();
        if (!named.ok()) return Failure{named.error(), Subject::kNone};
        rknnd_buffer_key answer = {};
        static_assert(sizeof answer.text > 2 * sizeof named->key);
        char* digit = answer.text;
        for (const uint8_t byte : named->key) {
          constexpr char kDigits[] = "0123456789abcdef";
          *digit++ = kDigits[byte >> 4];
          *digit++ = kDigits[byte & 15];
        }
        answer.offset = buffer.offset();
        answer.size = buffer.size();
        CopyFitting(answer, key, size);
        return {};
      });
}

RKNND_API int rknnd_query_memory(rknn_context context, rknnd_memory* memory,
                                 uint32_t size) {
  return CallOn("rknnd_query_memory", context, [&](Context& found) -> Outcome {
    if (memory == nullptr) return WrongParameter("memory is NULL");
    const auto kinds = found.target().GetMemory();
    if (!kinds.ok()) {
      return rknnd::client::Failure{kinds.error(),
                                    rknnd::client::Subject::kContext};
    }
    rknnd_memory known = {};
    known.weight = kinds->weight;
    known.internal = kinds->internal;
    known.io = kinds->io;
    known.other = kinds->other;
    CopyFitting(known, memory, size);
    return {};
  });
}

RKNND_API int rknnd_query_layers(rknn_context context,
                                 const rknnd_layer** layers, uint32_t* count) {
  return CallOn("rknnd_query_layers", context, [&](Context& found) -> Outcome {
    if (layers == nullptr || count == nullptr) {
      return WrongParameter("layers or count is NULL");
    }
    const auto rows = found.layer_tables().Layers();
    if (!rows.ok()) {
      return rknnd::client::Failure{rows.error(),
                                    rknnd::client::Subject::kContext};
    }
    *layers = rows->data();
    *count = static_cast<uint32_t>(rows->size());
    return {};
  });
}

RKNND_API int rknnd_query_kernels(rknn_context context,
                                  const rknnd_kernel** kernels,
                                  uint32_t* count) {
  return CallOn("rknnd_query_kernels", context, [&](Context& found) -> Outcome {
    if (kernels == nullptr || count == nullptr) {
      return WrongParameter("kernels or count is NULL");
    }
    const auto rows = found.layer_tables().Kernels();
    if (!rows.ok()) return Failure{rows.error(), Subject::kContext};
    *kernels = rows->data();
    *count = static_cast<uint32_t>(rows->size());
    return {};
  });
}

RKNND_API int rknnd_set_progress(rknnd_progress callback, void* user) {
  rknnd::client::SetProgress(callback, user);
  return RKNN_SUCC;
}

RKNND_API int rknnd_dump(rknn_context context, const char* directory) {
  return CallOn("rknnd_dump", context, [&](Context& found) -> Outcome {
    if (directory == nullptr) return WrongParameter("directory is NULL");
    return rknnd::client::RunDumped(found, nullptr, directory);
  });
}

RKNND_API int rknnd_model_token(rknn_context context, rknnd_token* token) {
  return CallOn("rknnd_model_token", context, [&](Context& found) -> Outcome {
    if (token == nullptr) return WrongParameter("token is NULL");
    // What says how the bytes came, or whose weights they share, is over: the
    // hash knows it all.
    constexpr uint32_t kOfTheFile =
        RKNN_FLAG_MODEL_BUFFER_ZERO_COPY | RKNN_FLAG_SHARE_WEIGHT_MEM;
    const std::string text = rknnd::client::PrintToken(
        {found.origin().id, found.flags() & ~kOfTheFile});
    static_assert(sizeof token->text > 128);
    *token = {};
    text.copy(token->text, sizeof token->text - 1);
    return {};
  });
}

RKNND_API int rknnd_init_from_token(rknn_context* context,
                                    const rknnd_token* token) {
  return rknnd::client::Call("rknnd_init_from_token", [&]() -> Outcome {
    if (context == nullptr || token == nullptr) {
      return WrongParameter("context or token is NULL");
    }
    const auto parsed = rknnd::client::ParseToken(
        {token->text, strnlen(token->text, sizeof token->text)});
    if (!parsed.ok()) {
      return rknnd::client::Failure{parsed.error(),
                                    rknnd::client::Subject::kNone};
    }
    auto target = rknnd::client::Runtime::Get().target();
    if (!target.ok()) {
      return rknnd::client::Failure{std::move(target).error(),
                                    rknnd::client::Subject::kNone};
    }
    rknnd::client::ContextRequest request;
    request.flags = parsed->flags;
    uint32_t handle = 0;
    if (Outcome done = rknnd::client::MakeContext(
            request, rknnd::client::ModelSource::OfId(parsed->id), {}, *target,
            &handle);
        !done.ok()) {
      return done;
    }
    *context = handle;
    return {};
  });
}

RKNND_API int rknnd_last_run(rknn_context context, rknnd_run_report* report) {
  return CallOn("rknnd_last_run", context, [&](Context& found) -> Outcome {
    if (report == nullptr) return WrongParameter("report is NULL");
    const rknnd::client::LastRun last = found.last_run();
    if (last.serial == 0) {
      return rknnd::client::Failure{{rknnd::base::Code::kFailedPrecondition,
                                     "the context has not run yet"},
                                    rknnd::client::Subject::kContext};
    }
    *report = {};
    report->frame_id = last.frame;
    report->queue_ns = last.report.queue_ns;
    report->run_ns = last.report.run_ns;
    report->total_ns = last.report.total_ns;
    report->core = last.report.core;
    report->drops = last.report.drops;
    return {};
  });
}

}  // extern "C"
