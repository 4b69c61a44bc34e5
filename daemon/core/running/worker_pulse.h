// What a worker is at, as far as the watchdog has to know: asleep, in the
// device, or in the daemon's own code, where nothing takes long. The worker
// tells (one store to a word of its own), daemon/progress_watch reads.

#ifndef DAEMON_CORE_RUNNING_WORKER_PULSE_H_
#define DAEMON_CORE_RUNNING_WORKER_PULSE_H_

#include <atomic>
#include <cstdint>

namespace rknnd::core {

class WorkerPulse {
 public:
  enum class At : uint64_t {
    kAsleep,
    kWork,
    kDevice,  // which may hang: the hang watch's concern, not the watchdog's
  };

  // A step further, and what this one is. Thread: the worker.
  void Step(At at) {
    word_.store((word_.load(std::memory_order_relaxed) & ~kAt) + kStep +
                    static_cast<uint64_t>(at),
                std::memory_order_relaxed);
  }

  // Another one after each step. Thread: any.
  [[nodiscard]] uint64_t word() const {
    return word_.load(std::memory_order_relaxed);
  }
  static bool IsAtWork(uint64_t word) {
    return (word & kAt) == static_cast<uint64_t>(At::kWork);
  }

  // Of the calling thread; null on one that is no worker.
  [[nodiscard]] static WorkerPulse* OfThread() { return of_thread_; }
  static void SetOfThread(WorkerPulse* pulse) { of_thread_ = pulse; }

 private:
  static constexpr uint64_t kAt = 3, kStep = 4;

  std::atomic<uint64_t> word_{0};
  static inline thread_local WorkerPulse* of_thread_ = nullptr;
};

// In the device as long as this lives.
class InDevice {
 public:
  InDevice() : pulse_(WorkerPulse::OfThread()) {
    if (pulse_ != nullptr) pulse_->Step(WorkerPulse::At::kDevice);
  }
  ~InDevice() {
    if (pulse_ != nullptr) pulse_->Step(WorkerPulse::At::kWork);
  }
  InDevice(const InDevice&) = delete;
  InDevice& operator=(const InDevice&) = delete;

 private:
  WorkerPulse* const pulse_;
};

}  // namespace rknnd::core

#endif  // DAEMON_CORE_RUNNING_WORKER_PULSE_H_
