// A model that the vendor's library runs, in a worker that may be lost: then
// another worker loads it again, from the copy of the file that is kept here.
//
//   Load     quarantine -> file kept -> worker -> description
//   Run      bindings -> a set of the lane -> worker -> answer; once more where
//            the worker ended under the job

#ifndef DRIVER_RKNNRT_RKNNRT_MODEL_H_
#define DRIVER_RKNNRT_RKNNRT_MODEL_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/posix/mutex.h"
#include "base/posix/unique_fd.h"
#include "driver/device.h"
#include "driver/rknnrt/description.h"
#include "driver/rknnrt/protocol.h"
#include "driver/rknnrt/quarantine.h"
#include "driver/rknnrt/worker_pool.h"
#include "driver/rknnrt/worker_process.h"

namespace rknnd::rknnrt {

// Thread: any; Run one at a time for each lowest core.
class RknnrtModel final : public driver::Model {
 public:
  // `workers` and `quarantine` outlive the model.
  static absl::StatusOr<std::unique_ptr<RknnrtModel>> Load(
      const driver::LoadRequest& request, const std::string& because,
      WorkerPool& workers, Quarantine& quarantine);
  ~RknnrtModel() override;

  [[nodiscard]] const driver::ModelInfo& info() const override {
    return description_.info;
  }
  [[nodiscard]] absl::StatusOr<uint64_t> CheckBinding(
      uint32_t program, driver::Direction direction, uint32_t index,
      const driver::TensorFormat& format) const override;
  absl::Status CopyWeights(driver::Memory& to, uint64_t offset) const override;
  // The library's weights, and the file that is kept.
  [[nodiscard]] uint64_t held_weights() const override {
    return description_.info.weight_size + size_;
  }

  // `reset`: the NPU is being reset once it holds true.
  absl::Status Run(const driver::JobRequest& job,
                   const std::atomic<bool>& reset) const;

 private:
  // What a set of a lane is bound to.
  struct Set {
    bool is_bound = false;
    uint64_t used = 0;  // when, in runs of the lane
    RunRecord record;
  };
  struct LaneSets {
    uint64_t runs = 0;
    RunRecord wanted;
    std::array<Set, kSets> sets;
  };
  // The model in one worker.
  struct Hosted {
    std::shared_ptr<WorkerProcess> worker;
    uint32_t number = 0;
    Description description;
    std::atomic<bool> blamed{false};  // its death was counted
    std::array<std::unique_ptr<LaneSets>, kMostLanes> lanes;
  };

  RknnrtModel(const driver::LoadRequest& request, WorkerPool& workers,
              std::shared_ptr<Conduct> conduct);
  // The model in a worker that lives, loaded again where it must be.
  absl::StatusOr<std::shared_ptr<Hosted>> Host() const;
  absl::Status LoadIn(Hosted& hosted) const;
  absl::Status RunIn(Hosted& hosted, const driver::JobRequest& job,
                     const std::atomic<bool>& reset) const;
  absl::Status Describe(const driver::JobRequest& job, RunRecord& record) const;
  absl::Status TellOfMemory(const Hosted& hosted,
                            const driver::JobRequest& job) const;
  void CountDeath(Hosted& hosted) const;

  WorkerPool& workers_;
  const std::shared_ptr<Conduct> conduct_;
  const std::string name_, sha256_;
  base::UniqueFd file_;
  uint64_t size_ = 0;
  Description description_;    // by the first worker
  mutable base::Mutex mutex_;  // held while a worker loads it
  mutable std::shared_ptr<Hosted> hosted_ RKNND_GUARDED_BY(mutex_);
};

}  // namespace rknnd::rknnrt

#endif  // DRIVER_RKNNRT_RKNNRT_MODEL_H_
