// Whether a job is to end before it is done: nobody wants its answer any more,
// or the device is reset under it. Looked at between layers, and within those
// that take long.

#ifndef DRIVER_SOFT_PLAN_STOP_SIGNAL_H_
#define DRIVER_SOFT_PLAN_STOP_SIGNAL_H_

#include <atomic>

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

}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_PLAN_STOP_SIGNAL_H_
