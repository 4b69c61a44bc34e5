// A device for compiled models on the vendor's library, which workers host:
// what our own executor declines, this runs. It does the loading and running of
// models; memory is attached by the software NPU (driver/compound_device.h puts
// them together).

#ifndef DRIVER_RKNNRT_RKNNRT_DEVICE_H_
#define DRIVER_RKNNRT_RKNNRT_DEVICE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/posix/clock.h"
#include "driver/device.h"
#include "driver/memory/cache_state.h"
#include "driver/reset_eras.h"
#include "driver/rknnrt/quarantine.h"
#include "driver/rknnrt/rknnrt_model.h"
#include "driver/rknnrt/worker_pool.h"
#include "driver/soft/attached_memory.h"
#include "driver/soft/job_caches.h"

namespace rknnd::rknnrt {

// Thread: any; one job a core at a time.
class RknnrtDevice {
 public:
  // Errors say why the library cannot be used. `clock` outlives the device.
  static absl::StatusOr<std::unique_ptr<RknnrtDevice>> Open(
      PoolOptions options, const base::Clock& clock);

  // `because`: why this device, for people.
  absl::StatusOr<std::unique_ptr<driver::Model>> Load(
      const driver::LoadRequest& request, const std::string& because);
  // A job of a model that Load() made.
  void Submit(const driver::JobRequest& job);
  // Memory that jobs will bring, before any of them knows it.
  absl::Status OnAttached(soft::AttachedMemory& memory,
                          const driver::MemoryRef& ref);
  // Jobs that run now end with ABORTED, and their workers with them. `done` is
  // called once none of them is left.
  void Reset(std::function<void(absl::Status)> done);

  [[nodiscard]] uint64_t resets() const { return resets_.load(); }
  [[nodiscard]] driver::CacheSyncs cache_syncs() const {
    return cache_count_.get();
  }
  [[nodiscard]] uint64_t deaths() const { return workers_->deaths(); }
  Quarantine& quarantine() { return quarantine_; }

 private:
  RknnrtDevice(std::unique_ptr<WorkerPool> workers, uint32_t cores,
               const base::Clock& clock)
      : workers_(std::move(workers)), clock_(clock), caches_(cores) {}
  absl::Status Run(const driver::JobRequest& job,
                   const std::atomic<bool>& reset);

  const std::unique_ptr<WorkerPool> workers_;
  const base::Clock& clock_;
  Quarantine quarantine_;
  driver::CacheCalls kernel_caches_;
  driver::CacheSyncCount cache_count_;
  std::vector<soft::JobCaches> caches_;  // by the lowest core of a job
  std::atomic<uint64_t> resets_{0};
  driver::ResetEras eras_;
};

}  // namespace rknnd::rknnrt

#endif  // DRIVER_RKNNRT_RKNNRT_DEVICE_H_
