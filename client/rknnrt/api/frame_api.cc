// rknnd's functions for camera frames. Called by programs, on any of their
// threads, with pointers that may be stale.

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <string>

#include "client/include/rknnd.h"
#include "client/rknnrt/call.h"
#include "client/rknnrt/runtime.h"

using rknnd::client::CallOn;
using rknnd::client::Context;
using rknnd::client::Failure;
using rknnd::client::Outcome;
using rknnd::client::Runtime;
using rknnd::client::Subject;
using rknnd::client::TensorMemory;
using rknnd::client::WrongParameter;

namespace {

template <size_t kCount>
bool AllZero(const uint32_t (&numbers)[kCount]) {
  return std::all_of(numbers, numbers + kCount,
                     [](uint32_t number) { return number == 0; });
}

}  // namespace

extern "C" {

RKNND_API int rknnd_set_input_frame(rknn_context context, uint32_t index,
                                    const rknnd_frame* frame) {
  return CallOn(
      "rknnd_set_input_frame", context, [&](Context& found) -> Outcome {
        if (frame == nullptr) return WrongParameter("frame is NULL");
        if (!AllZero(frame->reserved)) {
          return WrongParameter(
              "frame->reserved is not 0: zero the frame first");
        }
        // Held until the target has its own.
        std::array<std::shared_ptr<TensorMemory>, RKNND_MAX_PLANES> held;
        Context::PlaneMemory memory{};
        for (size_t p = 0; p < held.size(); ++p) {
          const rknnd_plane& plane = frame->planes[p];
          if (plane.reserved != 0) {
            return WrongParameter(
                "reserved of a plane is not 0: zero the frame first");
          }
          if (plane.memory == nullptr) continue;
          auto registered = Runtime::Get().FindMemory(plane.memory);
          if (!registered.ok()) {
            return Failure{std::move(registered).error(), Subject::kNone};
          }
          held[p] = *std::move(registered);
          memory[p] = held[p]->buffer.get();
        }
        return found.BindFrame(index, *frame, memory);
      });
}

RKNND_API int rknnd_place_frame(rknn_context context, uint32_t index,
                                const rknnd_frame* frame,
                                rknnd_placement* placement, uint32_t size) {
  return CallOn("rknnd_place_frame", context, [&](Context& found) -> Outcome {
    if (frame == nullptr || placement == nullptr) {
      return WrongParameter("frame or placement is NULL");
    }
    rknnd_placement known = {};
    if (Outcome done = found.PlaceFrame(index, *frame, &known); !done.ok())
      return done;
    std::memset(placement, 0, size);
    std::memcpy(placement, &known, std::min<size_t>(size, sizeof known));
    return {};
  });
}

}  // extern "C"
