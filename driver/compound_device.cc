#include "driver/compound_device.h"

#include <atomic>
#include <functional>
#include <memory>
#include <utility>

#include "driver/rknpu/device/rknpu_device.h"
#include "driver/rknpu/device/rknpu_model.h"

namespace rknnd::driver {
namespace {

// Thread: any.
class CompoundDevice final : public Device {
 public:
  CompoundDevice(std::unique_ptr<Device> soft, const std::string& platform,
                 std::unique_ptr<rknpu::Backend> backend,
                 const base::Clock* clock)
      : soft_(std::move(soft)),
        programs_(std::move(backend), platform, soft_->info().cores,
                  clock == nullptr ? monotonic_ : *clock) {}

  [[nodiscard]] const DeviceInfo& info() const override {
    return soft_->info();
  }
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
    return soft_->Attach(memory, access);
  }
  void Submit(const JobRequest& job) override {
    const auto* program = dynamic_cast<const rknpu::RknpuModel*>(job.model);
    if (program == nullptr) return soft_->Submit(job);
    programs_.Submit(job, *program);
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
  [[nodiscard]] uint64_t resets() const override { return soft_->resets(); }

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
};

}  // namespace

std::unique_ptr<Device> MakeCompoundDevice(
    std::unique_ptr<Device> soft, const std::string& platform,
    std::unique_ptr<rknpu::Backend> backend, const base::Clock* clock) {
  return std::make_unique<CompoundDevice>(std::move(soft), platform,
                                          std::move(backend), clock);
}

}  // namespace rknnd::driver
