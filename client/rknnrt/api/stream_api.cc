// How a context's frames wait, and whether a stream of them fits. Called by
// programs, on any of their threads.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string_view>

#include "client/include/rknnd.h"
#include "client/rknnrt/call.h"
#include "client/rknnrt/copy_fitting.h"
#include "client/rknnrt/sized_struct.h"

using rknnd::client::CallOn;
using rknnd::client::Context;
using rknnd::client::CopyFitting;
using rknnd::client::Outcome;
using rknnd::client::ReadFitting;
using rknnd::client::WrongParameter;

namespace {

// Beyond what any clock of a camera counts.
constexpr float kMostFramesPerSecond = 1e6F;
constexpr uint32_t kLowestPriority = 2;  // of the flag

}  // namespace

extern "C" {

RKNND_API int rknnd_set_queue_policy(rknn_context context,
                                     const rknnd_queue_policy* policy) {
  return rknnd::client::CallOn(
      "rknnd_set_queue_policy", context,
      [&](rknnd::client::Context& found) -> rknnd::client::Outcome {
        if (policy == nullptr) {
          return rknnd::client::WrongParameter("policy is NULL");
        }
        rknnd_queue_policy known = {};
        if (Outcome checked = rknnd::client::ReadStruct(
                *policy, "rknnd_queue_policy", &known);
            !checked.ok()) {
          return checked;
        }
        if (known.policy > RKNND_QUEUE_NEWEST) {
          return rknnd::client::WrongParameter(
              "policy is neither RKNND_QUEUE_FIFO nor RKNND_QUEUE_NEWEST");
        }
        constexpr uint64_t kMillisecond = rknnd::base::kMillisecond;
        return rknnd::client::ToOutcome(
            found.target().SetQueue(
                found.number(),
                {known.policy, known.depth, known.max_age_ms * kMillisecond}),
            rknnd::client::Subject::kContext);
      });
}

RKNND_API int rknnd_admit(rknn_context context, const rknnd_stream* stream,
                          rknnd_admission* admission, uint32_t size) {
  return CallOn("rknnd_admit", context, [&](Context& found) -> Outcome {
    if (stream == nullptr || admission == nullptr) {
      return WrongParameter("stream or admission is NULL");
    }
    if (stream->size < offsetof(rknnd_stream, streams)) {
      return WrongParameter("stream->size is not sizeof(rknnd_stream)");
    }
    const auto asked = ReadFitting<rknnd_stream>(stream, stream->size);
    if (!(asked.rate >= 0 && asked.rate <= kMostFramesPerSecond)) {
      return WrongParameter("stream->rate is no number of frames a second");
    }
    if (asked.priority > kLowestPriority) {
      return WrongParameter("stream->priority is none of RKNN_FLAG_PRIOR_*");
    }
    rknnd::wire::Admit request{};
    request.context = found.number();
    // A stream that is asked for is never one that ends.
    request.rate_mhz =
        asked.rate > 0
            ? std::max<uint64_t>(
                  1, static_cast<uint64_t>(std::llround(asked.rate * 1000.0)))
            : 0;
    request.priority = asked.priority;
    request.reserve = asked.reserve != 0;
    request.streams = asked.streams;
    const auto answer = found.target().Admit(request);
    if (!answer.ok()) {
      return rknnd::client::Failure{answer.error(),
                                    rknnd::client::Subject::kContext};
    }
    rknnd_admission known = {};
    known.fits = answer->fits ? 1 : 0;
    // Rounded down: that rate fits.
    known.rate =
        static_cast<float>(static_cast<double>(answer->rate_mhz) / 1e3);
    known.run_ns = answer->run_ns;
    known.measured = answer->measured ? 1 : 0;
    known.load =
        static_cast<float>(static_cast<double>(answer->load_ppm) / 1e6);
    std::string_view(answer->reason)
        .copy(known.reason, sizeof known.reason - 1);
    CopyFitting(known, admission, size);
    return {};
  });
}

}  // extern "C"
