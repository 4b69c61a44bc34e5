// The hot path's engine: scheduler, arenas and device together. Shared by all
// gates; workers drive it.

#ifndef DAEMON_CORE_RUNNER_IMPL_H_
#define DAEMON_CORE_RUNNER_IMPL_H_

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "base/posix/clock.h"
#include "daemon/core/arenas.h"
#include "daemon/core/job.h"
#include "daemon/core/runner.h"
#include "daemon/core/scheduler.h"
#include "daemon/core/types.h"
#include "driver/device.h"

namespace rknnd::core {

// Jobs keep it alive (through their gate). Holds no lock while the device, a
// sink or the waker is called. Thread: any.
class RunnerImpl final : public Runner, public JobFinisher {
 public:
  struct Parts {
    driver::Device* device = nullptr;
    const base::Clock* clock = nullptr;
    bool isolate = true;  // clears arenas behind their jobs
    WorkerWaker* waker = nullptr;
    std::unique_ptr<Scheduler> scheduler;
    std::shared_ptr<Arenas> arenas;
    // Called when nothing is queued or runs, once draining. Thread: any.
    std::function<void()> idle;
  };
  explicit RunnerImpl(Parts parts);

  void EnterWorker() override;
  void RunReady() override;
  void Finish(Job* job, const driver::JobResult& result) override;

  [[nodiscard]] Scheduler& scheduler() { return *parts_.scheduler; }
  [[nodiscard]] Arenas& arenas() { return *parts_.arenas; }
  [[nodiscard]] const base::Clock& clock() const { return *parts_.clock; }

  // From now on, and at once if so, tells when all is idle. No job may enter
  // any more.
  void Drain();
  void NoticeIdle();
  // Jobs may have become able to run without the end of another.
  void WakeWorker() { parts_.waker->WakeOne(); }

  void CountAnswer(bool ok) {
    (ok ? done_ : failed_).fetch_add(1, std::memory_order_relaxed);
  }
  [[nodiscard]] uint64_t done() const { return done_.load(); }
  [[nodiscard]] uint64_t failed() const { return failed_.load(); }
  // Jobs on a core whose answer is not posted yet.
  [[nodiscard]] uint64_t running() const { return running_.load(); }
  // How busy a core was until now. A job that ends meanwhile is in it once, up
  // to a moment between its end and now; the number of jobs may be one off.
  [[nodiscard]] CoreReport Report(uint32_t core) const;

 private:
  // How long a core was busy, in one word so that a reader never meets half of
  // a change: the time itself while no job is on the core, and else ~(start of
  // the job - time before it), which is negative. Written by whoever has the
  // core's token; read by any. Apart: workers of different cores share no cache
  // line for it.
  struct alignas(64) CoreTime {
    std::atomic<base::Nanoseconds> busy{0};
    std::atomic<uint64_t> jobs{0};

    void Begin(base::Nanoseconds now);
    void End(base::Nanoseconds now);
    [[nodiscard]] base::Nanoseconds Until(const base::Clock& clock) const;
  };

  template <class F>
  void ForEachCore(uint32_t cores, F f) {
    for (; cores != 0; cores &= cores - 1) {
      f(cores_[static_cast<size_t>(std::countr_zero(cores))]);
    }
  }
  void Start(Job* job);
  // For a gang that shares a batch: the further cores' arenas.
  void LendArenas(Job* job, uint64_t size);
  // Why the job is answered without a run, or OK with its request filled.
  absl::Status Prepare(Job* job);
  // `in_run_ready`: this thread takes the next job by itself.
  void End(Job* job, const driver::JobResult& result, bool in_run_ready);

  Parts parts_;
  std::atomic<bool> draining_{false};
  std::atomic<uint64_t> done_{0}, failed_{0}, running_{0};
  std::array<CoreTime, 32> cores_;  // the service opens no device with more
};

}  // namespace rknnd::core

#endif  // DAEMON_CORE_RUNNER_IMPL_H_
