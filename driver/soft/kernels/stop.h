// How a job ends before it is done: nobody wants its answer any more, or the
// device is reset under it. The thread that computes looks at the signal
// between layers and, within a layer, at each StopPoint: a kernel has one in
// every loop that may take longer than some milliseconds (MostOperations in
// work.h).
//
//   RunStoppable(signal, kernel.Run) ... StopPoint() --raised--> throws
//        <------------------- the signal's reason ---------------+
//
// The tensors of a job that was stopped are undefined, as after any error.

#ifndef DRIVER_SOFT_KERNELS_STOP_H_
#define DRIVER_SOFT_KERNELS_STOP_H_

#include <atomic>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"

namespace rknnd::soft {

// Thread: any; what it looks at outlives it.
class StopSignal {
 public:
  // `unwanted` may be null.
  StopSignal(const std::atomic<bool>* unwanted, const std::atomic<bool>* reset)
      : unwanted_(unwanted), reset_(reset) {}

  [[nodiscard]] bool raised() const {
    return reset_->load(std::memory_order_relaxed) ||
           (unwanted_ != nullptr && unwanted_->load(std::memory_order_relaxed));
  }
  // What a job ends with that finds it raised.
  [[nodiscard]] absl::Status Reason() const {
    if (reset_->load(std::memory_order_acquire)) {
      return absl::AbortedError(
          "an operator reset the NPU under the job: it may be run again");
    }
    return absl::CancelledError(
        "the job was stopped: its session ended or its time was over");
  }

 private:
  const std::atomic<bool>* const unwanted_;
  const std::atomic<bool>* const reset_;
};

namespace internal {
// Of the work that this thread does now.
extern constinit thread_local const StopSignal* stop_signal;
[[noreturn]] void ThrowStopped();
}  // namespace internal

// Calls `work`, whose StopPoints look at `signal`; null: it runs to its end.
// What a signal ended has the signal's reason. Does not nest.
absl::Status RunStoppable(const StopSignal* signal,
                          absl::FunctionRef<absl::Status()> work);

// Leaves the work by an exception, which RunStoppable takes, once its signal is
// raised. Costs a load or three; no library's frame may lie in between.
inline void StopPoint() {
  const StopSignal* const signal = internal::stop_signal;
  if (signal != nullptr && signal->raised()) internal::ThrowStopped();
}

}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_KERNELS_STOP_H_
