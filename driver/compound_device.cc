#include "driver/compound_device.h"

#include <atomic>
#include <functional>
#include <memory>
#include <typeinfo>
#include <utility>

#include "driver/rknpu/device/rknpu_device.h"
#include "driver/rknpu/device/rknpu_model.h"
#include "driver/soft/attached_memory.h"

namespace rknnd::driver {
namespace {

// One part for each core, and one for the arena that takes another's place:
// while it is made, the other one still has its own.
uint64_t CoreSram(const NpuOfDevice& npu, uint32_t cores) {
  return npu.sram / (cores + 1) / kSramPage * kSramPage;
}

// Thread: any.
class CompoundDevice final : public Device {
 public:
  CompoundDevice(std::unique_ptr<Device> soft, const std::string& platform,
                 std::unique_ptr<rknpu::Backend> backend,
                 const base::Clock* clock,
                 const std::optional<NpuOfDevice>& npu)
      : soft_(std::move(soft)),
        programs_(
            std::move(backend),
            {.platform = platform,
             .cores = soft_->info().cores,
             .mhz = soft_->info().mhz,
             .sram_bytes = npu.has_value() ? CoreSram(*npu, soft_->info().cores)
                                           : soft_->info().sram_total},
            clock == nullptr ? monotonic_ : *clock),
        info_(soft_->info()) {
    if (!npu.has_value()) return;
    info_.kind = npu->kind;
    info_.driver = npu->driver;
    info_.sram_total = npu->sram;
    if (npu->sram == 0) info_.sram_base = 0;
    info_.core_sram = CoreSram(*npu, info_.cores);
  }

  [[nodiscard]] const DeviceInfo& info() const override { return info_; }
  absl::StatusOr<std::unique_ptr<Model>> Load(
      const LoadRequest& request) override {
    // What the software NPU made of a model is its own.
    if (request.compiled.empty() && rknpu::RknpuDevice::Takes(request.bytes)) {
      return programs_.Load(request);
    }
    return soft_->Load(request);
  }
  absl::StatusOr<std::unique_ptr<Memory>> Attach(const MemoryRef& memory,
                                                 MemoryAccess access) override {
    absl::StatusOr<std::unique_ptr<Memory>> attached =
        soft_->Attach(memory, access);
    if (attached.ok()) {
      programs_.OnAttached(static_cast<soft::AttachedMemory&>(**attached));
    }
    return attached;
  }
  void Submit(const JobRequest& job) override {
    // One class of each kind: a comparison of two pointers.
    const Model& model = *job.model;
    if (typeid(model) != typeid(rknpu::RknpuModel)) return soft_->Submit(job);
    programs_.Submit(job);
  }
  void EnterWorker() override { soft_->EnterWorker(); }
  bool SetClock(double fraction) override { return soft_->SetClock(fraction); }

  // Jobs of both kinds end; the last of them tells.
  void Reset(std::function<void(absl::Status)> done) override {
    auto left = std::make_shared<std::atomic<int>>(2);
    const auto both = [left = std::move(left),
                       done = std::move(done)](const absl::Status& status) {
      if (--*left == 0 && done != nullptr) done(status);
    };
    programs_.Reset(both);
    soft_->Reset(both);
  }
  [[nodiscard]] uint64_t resets() const override {
    return soft_->resets() + programs_.resets();
  }

  [[nodiscard]] CacheSyncs cache_syncs() const override {
    CacheSyncs sum = soft_->cache_syncs();
    const CacheSyncs programs = programs_.cache_syncs();
    sum.done += programs.done;
    sum.skipped += programs.skipped;
    return sum;
  }

 private:
  const base::MonotonicClock monotonic_;
  const std::unique_ptr<Device> soft_;
  rknpu::RknpuDevice programs_;
  DeviceInfo info_;
};

}  // namespace

std::unique_ptr<Device> MakeCompoundDevice(
    std::unique_ptr<Device> soft, const std::string& platform,
    std::unique_ptr<rknpu::Backend> backend, const base::Clock* clock,
    const std::optional<NpuOfDevice>& npu) {
  return std::make_unique<CompoundDevice>(std::move(soft), platform,
                                          std::move(backend), clock, npu);
}

}  // namespace rknnd::driver
