#include "driver/rknpu/device/rknpu_device.h"

#include <exception>
#include <new>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "base/status/status.h"
#include "driver/soft/described_model.h"
#include "driver/soft/import/rknn.h"

namespace rknnd::rknpu {
namespace {

// A file that cannot be run still answers queries, and says why.
absl::StatusOr<std::unique_ptr<driver::Model>> Describe(
    const driver::LoadRequest& request, const absl::Status& why) {
  RKNND_ASSIGN_OR_RETURN(driver::ModelInfo info,
                         soft::DescribeCompiled(request.bytes, request.name));
  info.runnable = absl::InvalidArgumentError(
      absl::StrCat(info.runnable.message(), ". The reason: ", why.message()));
  return std::make_unique<soft::DescribedModel>(std::move(info));
}

}  // namespace

RknpuDevice::RknpuDevice(std::unique_ptr<Backend> backend, std::string platform,
                         uint32_t cores, const base::Clock& clock)
    : backend_(std::move(backend)),
      platform_(std::move(platform)),
      cores_(cores),
      clock_(clock),
      caches_(cores) {}

bool RknpuDevice::Takes(std::span<const std::byte> bytes) {
  return soft::IsCompiled(bytes);
}

absl::StatusOr<std::unique_ptr<driver::Model>> RknpuDevice::Load(
    const driver::LoadRequest& request) {
  try {
    absl::StatusOr<std::unique_ptr<RknpuModel>> model =
        RknpuModel::Load(request, platform_, cores_, *backend_);
    if (model.ok()) return std::unique_ptr<driver::Model>(*std::move(model));
    if (absl::IsResourceExhausted(model.status())) return model.status();
    return Describe(request, model.status());
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(
        absl::StrCat("model '", request.name, "': no memory left to load it"));
  }
}

void RknpuDevice::Submit(const driver::JobRequest& job,
                         const RknpuModel& model) {
  const std::shared_ptr<Era> era = CurrentEra();
  driver::JobResult result;
  result.started = clock_.Now();
  try {
    result.status = Run(job, model, *era);
  } catch (const std::bad_alloc&) {
    result.status = absl::ResourceExhaustedError("no memory left to run it");
  } catch (const std::exception& error) {
    result.status = absl::InternalError(error.what());
  }
  if (absl::IsCancelled(result.status) && era->over.load()) {
    result.status = absl::AbortedError(
        "an operator reset the NPU under the job: it may be run again");
  }
  result.ended = clock_.Now();
  job.listener->OnJobDone(std::move(result));
}

absl::Status RknpuDevice::Run(const driver::JobRequest& job,
                              const RknpuModel& model, const Era& era) {
  soft::JobCaches& caches = caches_[job.core];
  RKNND_RETURN_IF_ERROR(caches.Begin(job, kernel_caches_, cache_count_));
  const absl::Cleanup end = [this, &caches] {
    caches.End(kernel_caches_, /*good=*/false).IgnoreError();
  };
  absl::Status status = model.Run(job, clock_, &era.over);
  status.Update(caches.End(kernel_caches_, status.ok()));
  return status;
}

void RknpuDevice::Reset(std::function<void(absl::Status)> done) {
  auto ended = std::make_shared<Era>();
  {
    base::MutexLock lock(era_mutex_);
    era_.swap(ended);
  }
  ended->done = std::move(done);
  ended->over = true;
}

}  // namespace rknnd::rknpu
