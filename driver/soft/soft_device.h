// The software NPU: executes ONNX models on the CPU behind the same contract as
// a real one. A job runs on the thread that submits it, with the memory of the
// core it was given.

#ifndef DRIVER_SOFT_SOFT_DEVICE_H_
#define DRIVER_SOFT_SOFT_DEVICE_H_

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/posix/clock.h"
#include "base/posix/mapping.h"
#include "base/posix/mutex.h"
#include "driver/device.h"
#include "driver/memory/cache_state.h"
#include "driver/soft/gang.h"
#include "driver/soft/job_caches.h"
#include "driver/soft/kernels/stop.h"
#include "driver/soft/plan/program.h"
#include "driver/soft/plan/weight_pool.h"
#include "driver/soft/soc.h"
#include "driver/soft/soft_model.h"
#include "driver/soft/timing/pacer.h"
#include "driver/soft/timing/soc_clock.h"

namespace rknnd::soft {

// `options.soc` picks the profile; `options.clock` outlives the device, null is
// CLOCK_MONOTONIC; with `options.pace` jobs end when the SoC would end them.
absl::StatusOr<std::unique_ptr<driver::Device>> OpenSoftDevice(
    const driver::DeviceOptions& options);

// Thread: any.
class SoftDevice final : public driver::Device {
 public:
  SoftDevice(const SocProfile& soc, const base::Clock* clock, bool pace);

  [[nodiscard]] const driver::DeviceInfo& info() const override {
    return info_;
  }
  absl::StatusOr<std::unique_ptr<driver::Model>> Load(
      const driver::LoadRequest& request) override;
  absl::StatusOr<std::unique_ptr<driver::Memory>> Attach(
      const driver::MemoryRef& memory, driver::MemoryAccess access) override;
  void Submit(const driver::JobRequest& job) override;
  void EnterWorker() override;
  // Without pace nothing depends on the clock.
  bool SetClock(double fraction) override;
  void Reset(std::function<void(absl::Status)> done) override;
  [[nodiscard]] uint64_t resets() const override { return resets_.load(); }
  [[nodiscard]] driver::CacheSyncs cache_syncs() const override {
    return cache_count_.get();
  }
  // Before any other call. The kernel's, unless told; outlives the device.
  void set_cache_calls(driver::CacheCalls* calls) { cache_calls_ = calls; }

 private:
  // Private memory of one core: kernels keep pointers in it, so no client may
  // ever map it. A job holds it while it runs; a model that needs more replaces
  // it.
  struct Core {
    base::Mutex mutex;
    std::shared_ptr<base::Mapping> scratch RKNND_GUARDED_BY(mutex);
    // Its part of gang jobs; the first core is the lowest of any gang.
    std::unique_ptr<CoreThread> thread;
    JobCaches caches;  // of the job whose lowest core this is
  };

  absl::StatusOr<std::unique_ptr<SoftModel>> Restore(
      const driver::LoadRequest& request);
  absl::Status GrowScratch(uint64_t size);
  // Which cores a job runs on.
  static uint32_t MaskOf(const driver::JobRequest& job) {
    return job.core_mask | 1U << job.core;
  }
  // When the SoC would start and end it.
  PacedRun StartPaced(const driver::JobRequest& job);
  // Waits for that end; returns when the job ended.
  base::Nanoseconds FinishPaced(const driver::JobRequest& job,
                                const PacedRun& paced, bool ok);
  absl::Status RunJob(const driver::JobRequest& job, const StopSignal& stop);
  absl::Status Compute(const driver::JobRequest& job, const StopSignal& stop);
  absl::Status RunNetwork(const driver::JobRequest& job, Gang& gang,
                          std::byte* scratch, const StopSignal& stop);

  // The time between two resets. Held by each job that begins in it: the last
  // to go tells whoever asked for the reset that ended it.
  struct Era {
    std::atomic<bool> over{false};
    std::function<void(absl::Status)> done;  // written before `over`
    ~Era() {
      if (done != nullptr) done(absl::OkStatus());
    }
  };
  std::shared_ptr<Era> CurrentEra() const {
    base::MutexLock lock(era_mutex_);
    return era_;
  }

  const SocProfile soc_;
  const base::MonotonicClock monotonic_;
  const base::Clock& clock_;
  driver::DeviceInfo info_;
  SocClock soc_clock_;
  std::optional<Pacer> pacer_;
  const uint32_t cpus_;  // that this process may use
  // Models share what is alike; they have it too.
  const std::shared_ptr<WeightPool> weights_ = std::make_shared<WeightPool>();
  driver::CacheCalls kernel_caches_;
  driver::CacheCalls* cache_calls_ = &kernel_caches_;
  driver::CacheSyncCount cache_count_;
  std::vector<std::unique_ptr<Core>> cores_;
  mutable base::Mutex era_mutex_;
  std::shared_ptr<Era> era_ RKNND_GUARDED_BY(era_mutex_) =
      std::make_shared<Era>();
  std::atomic<uint64_t> resets_{0};
};

}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_SOFT_DEVICE_H_
