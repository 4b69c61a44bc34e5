#include "driver/rknnrt/rknnrt_device.h"

#include <exception>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status/status.h"
#include "base/values/model_options.h"

namespace rknnd::rknnrt {

absl::StatusOr<std::unique_ptr<RknnrtDevice>> RknnrtDevice::Open(
    PoolOptions options, const base::Clock& clock) {
  const uint32_t cores = options.setup.cores;
  if (cores > kMostLanes) {
    return absl::UnimplementedError(
        absl::StrCat("the vendor's library is hosted for NPUs of ", kMostLanes,
                     " cores at most, and this one has ", cores));
  }
  RKNND_ASSIGN_OR_RETURN(std::unique_ptr<WorkerPool> workers,
                         WorkerPool::Open(std::move(options), clock));
  return std::unique_ptr<RknnrtDevice>(
      new RknnrtDevice(std::move(workers), cores, clock));
}

absl::StatusOr<std::unique_ptr<driver::Model>> RknnrtDevice::Load(
    const driver::LoadRequest& request, const std::string& because) {
  const auto options = base::SplitModelOptions(request.options);
  if (options.ok() && options->custom) {
    return absl::UnimplementedError(absl::StrCat(
        "model '", request.name,
        "': the vendor's library runs whole models, and none between "
        "operators of a program"));
  }
  try {
    RKNND_ASSIGN_OR_RETURN(
        std::unique_ptr<RknnrtModel> model,
        RknnrtModel::Load(request, because, *workers_, quarantine_));
    return std::unique_ptr<driver::Model>(std::move(model));
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(
        absl::StrCat("model '", request.name, "': no memory left to load it"));
  }
}

void RknnrtDevice::Submit(const driver::JobRequest& job) {
  std::shared_ptr<const driver::ResetEras::Era> era = eras_.Current();
  driver::JobResult result;
  result.started = clock_.Now();
  try {
    result.status = Run(job, era->over());
  } catch (const std::exception& error) {
    result.status = absl::ResourceExhaustedError(error.what());
  }
  result.ended = clock_.Now();
  era.reset();
  job.listener->OnJobDone(std::move(result));
}

absl::Status RknnrtDevice::Run(const driver::JobRequest& job,
                               const std::atomic<bool>& reset) {
  soft::JobCaches& caches = caches_[job.core];
  RKNND_RETURN_IF_ERROR(caches.Begin(job, kernel_caches_, cache_count_));
  absl::Status status =
      static_cast<const RknnrtModel&>(*job.model).Run(job, reset);
  status.Update(caches.End(kernel_caches_, status.ok()));
  return status;
}

absl::Status RknnrtDevice::OnAttached(soft::AttachedMemory& memory,
                                      const driver::MemoryRef& ref) {
  RKNND_ASSIGN_OR_RETURN(std::shared_ptr<HostedMemory> hosted,
                         HostedMemory::Of(ref));
  memory.SetElsewhere(std::move(hosted));
  return absl::OkStatus();
}

void RknnrtDevice::Reset(std::function<void(absl::Status)> done) {
  ++resets_;
  eras_.Next(std::move(done));
  workers_->ResetBusy();
}

}  // namespace rknnd::rknnrt
