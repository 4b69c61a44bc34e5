// The faults in force, and whose turn it is: counts the jobs and requests each
// of them is about. Filled by operators (FaultControl), asked by FaultyDevice.

#ifndef DRIVER_FAULTS_FAULT_PLAN_H_
#define DRIVER_FAULTS_FAULT_PLAN_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/posix/mutex.h"
#include "driver/fault.h"

namespace rknnd::driver {

// By what an operator may name a model.
struct ModelNames {
  std::string sha256;  // 64 digits; of its bytes and, if any, its options
  std::string file;
  std::string graph;
};

// What is to happen to one job; several at once are possible.
struct JobFaults {
  struct Hit {
    uint64_t id = 0;  // 0: not hit
    uint64_t ms = 0;
    double factor = 0;
    uint32_t status = 0;
    explicit operator bool() const { return id != 0; }
  };
  Hit crash, dead_core, hang, wrong_status, slow;
};

// Thread: any. The lock is a leaf; `changed` is called without it.
class FaultPlan final : public FaultControl {
 public:
  // For a device with so many cores. `has_clock`: it can be throttled.
  FaultPlan(uint32_t cores, bool has_clock);

  absl::StatusOr<FaultReport> Set(const Fault& fault) override;
  [[nodiscard]] std::vector<FaultReport> List() const override;
  absl::Status Clear(uint64_t id) override;

  // Called after each change, with the report it is about and whether it was
  // set or cleared. Told once, before the plan is used.
  using Changed = std::function<void(const FaultReport& fault, bool set)>;
  void set_changed(Changed changed) { changed_ = std::move(changed); }

  // Allocates nothing. Thread: worker.
  JobFaults OnJob(uint32_t core_mask, const ModelNames& model);
  // RESOURCE_EXHAUSTED when this request is to be refused.
  absl::Status OnMemory(uint64_t bytes);
  absl::Status OnLoad(uint64_t bytes, const ModelNames& model);

  [[nodiscard]] bool Has(uint64_t id) const;
  [[nodiscard]] bool incoherent() const { return incoherent_.load(); }
  // How many times slower the clock is, 1: not at all.
  [[nodiscard]] double throttle() const;

 private:
  // Counts one request that `fault` is about; true when it is hit.
  static bool Count(FaultReport& fault);
  absl::Status Refuse(uint64_t bytes, const ModelNames* model);
  void Recount() RKNND_REQUIRES(mutex_);

  const uint32_t cores_;
  const bool has_clock_;
  Changed changed_;
  std::atomic<bool> any_{false};  // spares the lock while there is nothing
  std::atomic<bool> incoherent_{false};

  mutable base::Mutex mutex_;
  uint64_t next_id_ RKNND_GUARDED_BY(mutex_) = 1;
  std::map<uint64_t, FaultReport> faults_ RKNND_GUARDED_BY(mutex_);
};

}  // namespace rknnd::driver

#endif  // DRIVER_FAULTS_FAULT_PLAN_H_
