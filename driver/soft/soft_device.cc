#include "driver/soft/soft_device.h"

#include <exception>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status/status.h"
#include "driver/memory/fault_guard.h"
#include "driver/soft/attached_memory.h"
#include "driver/soft/kernels/threads.h"
#include "driver/soft/soft_model.h"

namespace rknnd::soft {
namespace {

// What programs print and parse: the kernel driver and the runtime release
// whose behaviour this device follows.
constexpr char kDriverVersion[] = "0.9.8";
constexpr char kRuntimeVersion[] = "2.3.2 (rknnd software NPU)";

}  // namespace

absl::StatusOr<std::unique_ptr<driver::Device>> OpenSoftDevice(
    const driver::DeviceOptions& options) {
  RKNND_ASSIGN_OR_RETURN(SocProfile soc, FindSoc(options.soc));
  driver::InstallFaultGuard();
  return std::make_unique<SoftDevice>(soc, options.clock);
}

SoftDevice::SoftDevice(const SocProfile& soc, const base::Clock* clock)
    : soc_(soc), clock_(clock == nullptr ? monotonic_ : *clock) {
  info_.kind = "soft";
  info_.soc = soc.name;
  info_.cores = soc.cores;
  info_.driver = kDriverVersion;
  info_.runtime = kRuntimeVersion;
  for (uint32_t c = 0; c < soc.cores; ++c) {
    cores_.push_back(std::make_unique<Core>());
  }
}

absl::StatusOr<std::unique_ptr<driver::Model>> SoftDevice::Load(
    std::span<const std::byte> bytes, const std::string& options,
    const std::string& name) {
  SingleThreaded alone;
  // Libraries below throw; and a file that asks for more memory than there is
  // must cost an error, not the process.
  try {
    RKNND_ASSIGN_OR_RETURN(std::unique_ptr<SoftModel> model,
                           SoftModel::Compile(bytes, options, name, soc_));
    RKNND_RETURN_IF_ERROR(GrowScratch(model->scratch_size()));
    return std::unique_ptr<driver::Model>(std::move(model));
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(
        absl::StrCat("model '", name, "': no memory left to load it"));
  } catch (const std::exception& error) {
    return absl::InternalError(
        absl::StrCat("model '", name, "': ", error.what()));
  }
}

absl::Status SoftDevice::GrowScratch(uint64_t size) {
  for (const std::unique_ptr<Core>& core : cores_) {
    {
      base::MutexLock lock(core->mutex);
      if (core->scratch != nullptr && core->scratch->size() >= size) continue;
    }
    RKNND_ASSIGN_OR_RETURN(
        base::Mapping mapping,
        base::ToStatusOr(base::Mapping::Anonymous(static_cast<size_t>(size))));
    auto scratch = std::make_shared<base::Mapping>(std::move(mapping));
    base::MutexLock lock(core->mutex);
    // Another load may have been quicker, and larger.
    if (core->scratch == nullptr || core->scratch->size() < size) {
      core->scratch = std::move(scratch);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<driver::Memory>> SoftDevice::Attach(
    const driver::MemoryRef& memory, driver::MemoryAccess access) {
  return AttachedMemory::Map(memory, access);
}

void SoftDevice::EnterWorker() { SingleThreaded::Forever(); }

void SoftDevice::Submit(const driver::JobRequest& job) {
  driver::JobResult result;
  result.started = clock_.Now();
  try {
    result.status = RunJob(job);
  } catch (const std::exception& error) {
    result.status = absl::InternalError(error.what());
  }
  result.ended = clock_.Now();
  job.listener->OnJobDone(std::move(result));
}

absl::Status SoftDevice::RunJob(const driver::JobRequest& job) {
  SingleThreaded alone;
  const auto& model = static_cast<const SoftModel&>(*job.model);
  const Program& program = model.program(job.program);
  std::shared_ptr<base::Mapping> scratch;
  {
    Core& core = *cores_[job.core];
    base::MutexLock lock(core.mutex);
    scratch = core.scratch;
  }
  RunMemory memory;
  memory.scratch = scratch->data();
  memory.arena = nullptr;
  if (job.internal != nullptr) {
    const auto& internal = static_cast<const AttachedMemory&>(*job.internal);
    std::span<std::byte> bytes = internal.From(job.internal_offset);
    if (bytes.size() < program.info.internal_size) {
      return absl::InvalidArgumentError(
          absl::StrCat("internal memory has ", bytes.size(), " bytes, ",
                       program.info.internal_size, " needed"));
    }
    memory.arena = bytes.data();
  } else if (program.info.internal_size > 0) {
    return absl::InvalidArgumentError("the job has no internal memory");
  }
  memory.inputs = job.inputs;
  memory.outputs = job.outputs;
  return program.Run(memory, job.layer_times, clock_);
}

}  // namespace rknnd::soft
