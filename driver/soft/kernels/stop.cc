// See stop.h.

#include "driver/soft/kernels/stop.h"

#include <utility>

#include "absl/cleanup/cleanup.h"

namespace rknnd::soft {
namespace {

// No std::exception: nobody but RunStoppable is to take it for an error.
struct Stopped {};

}  // namespace

namespace internal {
constinit thread_local const StopSignal* stop_signal = nullptr;
void ThrowStopped() { throw Stopped(); }
}  // namespace internal

absl::Status RunStoppable(const StopSignal* signal,
                          absl::FunctionRef<absl::Status()> work) {
  internal::stop_signal = signal;
  const absl::Cleanup forget = [] { internal::stop_signal = nullptr; };
  try {
    return work();
  } catch (const Stopped&) {
    return signal->Reason();
  }
}

}  // namespace rknnd::soft
