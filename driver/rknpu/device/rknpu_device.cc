#include "driver/rknpu/device/rknpu_device.h"

#include <exception>
#include <new>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "base/status/status.h"
#include "base/values/model_options.h"
#include "driver/soft/described_model.h"
#include "driver/soft/import/rknn.h"

namespace rknnd::rknpu {
namespace {

// A model whose jobs did not end so often has no further ones.
constexpr uint32_t kMostHangs = 3;
// A job that was reset without being at fault runs again, so often at most.
constexpr int kMostTurns = 8;

}  // namespace

RknpuDevice::RknpuDevice(std::unique_ptr<Backend> backend, NpuInfo npu,
                         const base::Clock& clock)
    : backend_(std::move(backend)),
      npu_(std::move(npu)),
      clock_(clock),
      scratch_(npu_.cores),
      caches_(npu_.cores) {}

bool RknpuDevice::Takes(std::span<const std::byte> bytes) {
  return soft::IsCompiled(bytes);
}

absl::StatusOr<std::unique_ptr<driver::Model>> RknpuDevice::Describe(
    const driver::LoadRequest& request, const std::string& why) {
  RKNND_ASSIGN_OR_RETURN(driver::ModelInfo info,
                         soft::DescribeCompiled(request.bytes, request.name));
  info.runnable = absl::InvalidArgumentError(
      absl::StrCat(info.runnable.message(), ". The reason: ", why));
  return std::make_unique<soft::DescribedModel>(std::move(info));
}

absl::StatusOr<std::unique_ptr<driver::Model>> RknpuDevice::Load(
    const driver::LoadRequest& request) {
  try {
    absl::StatusOr<std::unique_ptr<RknpuModel>> model =
        RknpuModel::Load(request, npu_, *backend_);
    if (model.ok()) {
      RKNND_RETURN_IF_ERROR(GrowScratch((*model)->scratch_bytes()));
      return std::unique_ptr<driver::Model>(*std::move(model));
    }
    if (absl::IsResourceExhausted(model.status())) return model.status();
    // A part of a model has nothing to be described.
    const auto text = base::SplitModelOptions(request.options);
    if (!text.ok() || text->custom) return model.status();
    return Describe(request, std::string(model.status().message()));
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(
        absl::StrCat("model '", request.name, "': no memory left to load it"));
  }
}

// Pages that are not used cost nothing. A job that runs keeps what it has.
absl::Status RknpuDevice::GrowScratch(size_t bytes) {
  for (uint32_t core = 0; core < npu_.cores; ++core) {
    RKNND_ASSIGN_OR_RETURN(base::Mapping mapping,
                           base::ToStatusOr(base::Mapping::Anonymous(bytes)));
    base::MutexLock lock(scratch_mutex_);
    std::shared_ptr<base::Mapping>& scratch = scratch_[core];
    if (scratch != nullptr && scratch->size() >= bytes) continue;
    scratch = std::make_shared<base::Mapping>(std::move(mapping));
  }
  return absl::OkStatus();
}

void RknpuDevice::Submit(const driver::JobRequest& job) {
  const auto& model = static_cast<const RknpuModel&>(*job.model);
  std::shared_ptr<const driver::ResetEras::Era> era = eras_.Current();
  driver::JobResult result;
  result.started = clock_.Now();
  try {
    result.status = Run(job, model, era->over());
  } catch (const std::bad_alloc&) {
    result.status = absl::ResourceExhaustedError("no memory left to run it");
  } catch (const std::exception& error) {
    result.status = absl::InternalError(error.what());
  }
  if (absl::IsCancelled(result.status) && era->over().load()) {
    result.status = absl::AbortedError(
        "an operator reset the NPU under the job: it may be run again");
  }
  result.ended = clock_.Now();
  job.listener->OnJobDone(std::move(result));
}

absl::Status RknpuDevice::Run(const driver::JobRequest& job,
                              const RknpuModel& model,
                              const std::atomic<bool>& reset) {
  soft::JobCaches& caches = caches_[job.core];
  RKNND_RETURN_IF_ERROR(caches.Begin(job, kernel_caches_, cache_count_));
  const absl::Cleanup end = [this, &caches] {
    caches.End(kernel_caches_, /*good=*/false).IgnoreError();
  };
  // After a job that does not end the NPU takes its next ones like any other.
  if (reset_wanted_.exchange(false)) backend_->Reset().IgnoreError();
  if (model.hangs() >= kMostHangs) {
    return absl::FailedPreconditionError(
        absl::StrCat("its jobs are not run any more: ", kMostHangs,
                     " of them did not end, and each took a reset of the NPU. "
                     "Load the model again to try once more"));
  }
  const std::shared_ptr<base::Mapping> scratch = ScratchOf(job.core);
  absl::Status status;
  int hangs = 0;
  for (int turn = 0; turn < kMostTurns; ++turn) {
    status = model.Run(
        job,
        {.clock = &clock_, .stop_too = &reset, .scratch = scratch->data()});
    if (reset.load() || (job.stop != nullptr && job.stop->load())) break;
    if (absl::IsDeadlineExceeded(status)) {
      model.CountHang();
      if (++hangs > 1) break;
    } else if (!absl::IsAborted(status)) {
      break;
    }
  }
  if (status.ok() && hangs == 0) model.CountEnd();
  status.Update(caches.End(kernel_caches_, status.ok()));
  return status;
}

void RknpuDevice::OnAttached(soft::AttachedMemory& memory) {
  if (memory.shareable() >= 0) {
    memory.Keep(backend_->Import(memory.shareable()));
  }
}

void RknpuDevice::Reset(std::function<void(absl::Status)> done) {
  reset_wanted_ = true;
  eras_.Next(std::move(done));
}

}  // namespace rknnd::rknpu
