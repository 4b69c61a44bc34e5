#include "driver/compound_device.h"

#include <atomic>
#include <functional>
#include <memory>
#include <typeinfo>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status/status.h"
#include "driver/rknnrt/rknnrt_device.h"
#include "driver/rknnrt/rknnrt_model.h"
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
  CompoundDevice(CompoundParts parts, const base::Clock* clock)
      : soft_(std::move(parts.soft)),
        library_(std::move(parts.library)),
        library_first_(parts.library_first),
        programs_(std::move(parts.backend),
                  {.platform = parts.platform,
                   .cores = soft_->info().cores,
                   .mhz = soft_->info().mhz,
                   .sram_bytes = parts.npu.has_value()
                                     ? CoreSram(*parts.npu, soft_->info().cores)
                                     : soft_->info().sram_total},
                  clock == nullptr ? monotonic_ : *clock),
        info_(soft_->info()) {
    if (parts.npu.has_value()) TakeOver(*parts.npu);
    if (library_first_) info_.kind = "rknnrt";
  }

  [[nodiscard]] const DeviceInfo& info() const override { return info_; }
  absl::StatusOr<std::unique_ptr<Model>> Load(
      const LoadRequest& request) override {
    // What the software NPU made of a model is its own.
    if (!request.compiled.empty() ||
        !rknpu::RknpuDevice::Takes(request.bytes)) {
      return soft_->Load(request);
    }
    if (library_ == nullptr) return programs_.Load(request);
    return library_first_ ? library_->Load(request, "the configuration says so")
                          : LoadWhereItRuns(request);
  }
  absl::StatusOr<std::unique_ptr<Memory>> Attach(const MemoryRef& memory,
                                                 MemoryAccess access) override {
    absl::StatusOr<std::unique_ptr<Memory>> attached =
        soft_->Attach(memory, access);
    if (!attached.ok()) return attached;
    auto& own = static_cast<soft::AttachedMemory&>(**attached);
    programs_.OnAttached(own);
    if (library_ != nullptr) {
      RKNND_RETURN_IF_ERROR(library_->OnAttached(own, memory));
    }
    return attached;
  }
  void Submit(const JobRequest& job) override {
    // One class of each kind: a comparison of two pointers.
    const Model& model = *job.model;
    if (typeid(model) == typeid(rknpu::RknpuModel)) {
      programs_.Submit(job);
    } else if (typeid(model) == typeid(rknnrt::RknnrtModel)) {
      library_->Submit(job);
    } else {
      soft_->Submit(job);
    }
  }
  void EnterWorker() override { soft_->EnterWorker(); }
  bool SetClock(double fraction) override { return soft_->SetClock(fraction); }

  // Jobs of all kinds end; the last of them tells.
  void Reset(std::function<void(absl::Status)> done) override {
    auto left = std::make_shared<std::atomic<int>>(library_ == nullptr ? 2 : 3);
    const auto all = [left = std::move(left),
                      done = std::move(done)](const absl::Status& status) {
      if (--*left == 0 && done != nullptr) done(status);
    };
    if (library_ != nullptr) library_->Reset(all);
    programs_.Reset(all);
    soft_->Reset(all);
  }
  [[nodiscard]] uint64_t resets() const override {
    return soft_->resets() + programs_.resets();
  }

  [[nodiscard]] CacheSyncs cache_syncs() const override {
    CacheSyncs sum = soft_->cache_syncs();
    const CacheSyncs programs = programs_.cache_syncs();
    const CacheSyncs library =
        library_ == nullptr ? CacheSyncs{} : library_->cache_syncs();
    sum.done += programs.done + library.done;
    sum.skipped += programs.skipped + library.skipped;
    return sum;
  }

  [[nodiscard]] uint64_t worker_deaths() const override {
    return library_ == nullptr ? 0 : library_->deaths();
  }
  [[nodiscard]] std::vector<QuarantinedModel> quarantined() const override {
    if (library_ == nullptr) return {};
    return library_->quarantine().List();
  }
  absl::Status EndQuarantine(const std::string& sha256) override {
    if (library_ == nullptr) return Device::EndQuarantine(sha256);
    return library_->quarantine().Release(sha256);
  }

 private:
  void TakeOver(const NpuOfDevice& npu) {
    info_.kind = npu.kind;
    info_.driver = npu.driver;
    info_.sram_total = npu.sram;
    if (npu.sram == 0) info_.sram_base = 0;
    info_.core_sram = CoreSram(npu, info_.cores);
  }
  // A model that nothing can run is described, with what each said of it.
  absl::StatusOr<std::unique_ptr<Model>> LoadWhereItRuns(
      const LoadRequest& request) {
    absl::StatusOr<std::unique_ptr<Model>> ours = programs_.Load(request);
    if (ours.ok() && (*ours)->info().runnable.ok()) return ours;
    // No reason of the file's.
    if (absl::IsResourceExhausted(ours.status())) return ours;
    const absl::Status why =
        ours.ok() ? (*ours)->info().runnable : ours.status();
    absl::StatusOr<std::unique_ptr<Model>> hosted = library_->Load(
        request,
        absl::StrCat("rknnd's own executor declines it: ", why.message()));
    if (hosted.ok()) return hosted;
    if (!ours.ok())
      return base::Annotate(hosted.status(), std::string(why.message()));
    return programs_.Describe(
        request, absl::StrCat(why.message(), ". The vendor's library: ",
                              hosted.status().message()));
  }

  const base::MonotonicClock monotonic_;
  const std::unique_ptr<Device> soft_;
  const std::unique_ptr<rknnrt::RknnrtDevice> library_;
  const bool library_first_;
  rknpu::RknpuDevice programs_;
  DeviceInfo info_;
};

}  // namespace

CompoundParts::CompoundParts() = default;
CompoundParts::CompoundParts(CompoundParts&& other) noexcept = default;
CompoundParts::~CompoundParts() = default;

std::unique_ptr<Device> MakeCompoundDevice(CompoundParts parts,
                                           const base::Clock* clock) {
  return std::make_unique<CompoundDevice>(std::move(parts), clock);
}

}  // namespace rknnd::driver
