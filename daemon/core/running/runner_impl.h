// The hot path's engine: scheduler, arenas and device together. Shared by all
// gates; workers drive it.

#ifndef DAEMON_CORE_RUNNING_RUNNER_IMPL_H_
#define DAEMON_CORE_RUNNING_RUNNER_IMPL_H_

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "base/posix/clock.h"
#include "daemon/core/jobs/expiry.h"
#include "daemon/core/jobs/job.h"
#include "daemon/core/memory/arenas.h"
#include "daemon/core/running/attribution.h"
#include "daemon/core/running/fence_waits.h"
#include "daemon/core/running/hang_watch.h"
#include "daemon/core/running/isolation.h"
#include "daemon/core/running/job_ends.h"
#include "daemon/core/running/policies.h"
#include "daemon/core/running/runner.h"
#include "daemon/core/running/shared_runs.h"
#include "daemon/core/scheduling/leases.h"
#include "daemon/core/scheduling/scheduler.h"
#include "daemon/core/terms/types.h"
#include "driver/device.h"

namespace rknnd::core {

// Jobs keep it alive, through their session's. Holds no lock while the device,
// a sink or the waker is called. Thread: any.
class RunnerImpl final : public Runner, public JobFinisher {
 public:
  struct Parts {
    driver::Device* device = nullptr;
    const base::Clock* clock = nullptr;
    bool isolate = true;  // sessions from each other, in arenas
    WorkerWaker* waker = nullptr;
    std::unique_ptr<Scheduler> scheduler;
    std::shared_ptr<Arenas> arenas;
    // With this scheduler; null: no run is shared.
    std::shared_ptr<SharedRuns> shared_runs;
    FenceWatcher* fences = nullptr;  // null: jobs cannot have any
    base::Nanoseconds hang = 5 * base::kSecond;
    // Of Policies.
    base::Nanoseconds fence_timeout = 10 * base::kSecond;
    uint32_t jobs_per_context = 32;
    // Told of jobs that hang, and of their end. Thread: any.
    std::function<void(const HangReport&)> hung;
    // A core of AwaitCores is free. Thread: any.
    std::function<void()> freed;
    // Called when nothing is queued or runs, once draining. Thread: any.
    std::function<void()> idle;
  };
  explicit RunnerImpl(Parts parts);

  void EnterWorker() override;
  void RunReady() override;
  void ClearIdle() override { isolation_.ClearIdle(); }
  void Expire() override;
  void FenceReady(uint64_t token, FenceState state) override;
  [[nodiscard]] Progress progress() override;
  void Finish(Job* job, const driver::JobResult& result) override;

  [[nodiscard]] Arenas& arenas() { return *parts_.arenas; }
  [[nodiscard]] const Policies& policies() const { return policies_; }
  [[nodiscard]] JobEnds& ends() { return ends_; }

  // Cores that are lent, and to whom, until the next call. Thread: loop.
  void SetLent(std::vector<LentCores> lent);
  // Parts::freed is called at the end of jobs on these cores from now on; the
  // answer is which of them some job has now.
  uint32_t AwaitCores(uint32_t cores);

  // Jobs that hung, so far.
  [[nodiscard]] uint64_t hung() const { return hang_watch_.found(); }
  // Cores that such a job has now.
  [[nodiscard]] uint32_t cores_hung() { return hang_watch_.hanging(); }
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
  // Whether a job that may be answered by another's run is to run now.
  bool BeginShared(Job* job);
  // Answers one that was. True when some job can run now.
  bool AnswerShared(Job* job);
  bool AnswerOthers(Job* jobs);  // linked by `next`
  // For a gang that shares a batch: the further cores' arenas.
  void LendArenas(Job* job, uint64_t size);
  // Why the job is answered without a run, or OK with its request filled.
  absl::Status Prepare(Job* job);
  // `in_run_ready`: this thread takes the next job by itself.
  void End(Job* job, const driver::JobResult& result, bool in_run_ready);

  Parts parts_;
  Isolation isolation_;
  FenceWaits fence_waits_;
  Attribution attribution_{std::make_shared<Recorder>()};
  Expiry expiry_;
  HangWatch hang_watch_;
  LeasedCores leased_;
  const Policies policies_;
  JobEnds ends_;
  std::atomic<uint32_t> awaited_{0};  // cores
  std::atomic<uint64_t> running_{0};
  std::atomic<uint64_t> turns_{0};  // that workers took
  std::array<CoreTime, 32> cores_;  // the service opens no device with more
};

}  // namespace rknnd::core

#endif  // DAEMON_CORE_RUNNING_RUNNER_IMPL_H_
