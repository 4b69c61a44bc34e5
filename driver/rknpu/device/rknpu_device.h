// A device for compiled models (.rknn) on a back end of the NPU. Loads what can
// be run; a file that cannot be is described, with the reason in
// ModelInfo::runnable (driver/soft/described_model.h).
//
// Memory is attached by the software NPU, with which it shares a process: jobs
// bring soft::AttachedMemory (driver/compound_device.h puts both together).

#ifndef DRIVER_RKNPU_DEVICE_RKNPU_DEVICE_H_
#define DRIVER_RKNPU_DEVICE_RKNPU_DEVICE_H_

#include <atomic>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/posix/clock.h"
#include "base/posix/mapping.h"
#include "base/posix/mutex.h"
#include "driver/device.h"
#include "driver/memory/cache_state.h"
#include "driver/reset_eras.h"
#include "driver/rknpu/backend.h"
#include "driver/rknpu/device/rknpu_model.h"
#include "driver/soft/job_caches.h"

namespace rknnd::rknpu {

// Thread: any; one job a core at a time.
class RknpuDevice {
 public:
  // `npu` tells of the NPU behind `backend`; `clock` outlives the device.
  RknpuDevice(std::unique_ptr<Backend> backend, NpuInfo npu,
              const base::Clock& clock);

  // Whether a file is for this device: compiled, of any kind.
  static bool Takes(std::span<const std::byte> bytes);

  absl::StatusOr<std::unique_ptr<driver::Model>> Load(
      const driver::LoadRequest& request);
  // A file that cannot be run still answers queries, and says why.
  static absl::StatusOr<std::unique_ptr<driver::Model>> Describe(
      const driver::LoadRequest& request, const std::string& why);
  // A job of a model that Load() made.
  void Submit(const driver::JobRequest& job);
  // Memory that jobs will bring, before any of them knows it.
  void OnAttached(soft::AttachedMemory& memory);
  // `done` is called once no job is left that began before. The NPU itself is
  // reset before the next one begins.
  void Reset(std::function<void(absl::Status)> done);

  [[nodiscard]] uint64_t resets() const { return backend_->resets(); }
  [[nodiscard]] driver::CacheSyncs cache_syncs() const {
    return cache_count_.get();
  }

 private:
  absl::Status Run(const driver::JobRequest& job, const RknpuModel& model,
                   const std::atomic<bool>& reset);
  // One for each core, as large as the largest model needs.
  absl::Status GrowScratch(size_t bytes);
  std::shared_ptr<base::Mapping> ScratchOf(uint32_t core) const {
    base::MutexLock lock(scratch_mutex_);
    return scratch_[core];
  }

  const std::unique_ptr<Backend> backend_;
  const NpuInfo npu_;
  const base::Clock& clock_;
  mutable base::Mutex scratch_mutex_;
  std::vector<std::shared_ptr<base::Mapping>> scratch_
      RKNND_GUARDED_BY(scratch_mutex_);
  driver::CacheCalls kernel_caches_;
  driver::CacheSyncCount cache_count_;
  std::vector<soft::JobCaches> caches_;  // by the lowest core of a job
  std::atomic<bool> reset_wanted_{false};
  driver::ResetEras eras_;
};

}  // namespace rknnd::rknpu

#endif  // DRIVER_RKNPU_DEVICE_RKNPU_DEVICE_H_
