#include "driver/soft/soft_device.h"

#include <sched.h>

#include <algorithm>
#include <array>
#include <bit>
#include <exception>
#include <new>
#include <system_error>
#include <typeinfo>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "base/status/status.h"
#include "driver/memory/fault_guard.h"
#include "driver/soft/attached_memory.h"
#include "driver/soft/compiled/compiler.h"
#include "driver/soft/described_model.h"
#include "driver/soft/import/rknn.h"
#include "driver/soft/kernels/loops.h"
#include "driver/soft/kernels/threads.h"
#include "driver/soft/matmul/matmul_model.h"
#include "driver/soft/soft_model.h"

namespace rknnd::soft {
namespace {

// What programs print and parse: the kernel driver and the runtime release
// whose behaviour this device follows.
constexpr char kDriverVersion[] = "0.9.8";
constexpr char kRuntimeVersion[] = "2.3.2 (rknnd software NPU)";

// A gang has no more threads than there are CPUs: the answer is the same, and
// threads that wait for each other must not keep the CPU from each other.
uint32_t CountCpus() {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  if (sched_getaffinity(0, sizeof cpus, &cpus) != 0) return 1;
  return static_cast<uint32_t>(CPU_COUNT(&cpus));
}

absl::StatusOr<std::byte*> ArenaIn(const driver::Memory* memory,
                                   uint64_t offset, const Program& program) {
  if (memory == nullptr) {
    if (program.info.internal_size == 0) return nullptr;
    return absl::InvalidArgumentError("the job has no internal memory");
  }
  std::span<std::byte> bytes =
      static_cast<const AttachedMemory&>(*memory).From(offset);
  if (bytes.size() < program.info.internal_size) {
    return absl::InvalidArgumentError(
        absl::StrCat("internal memory has ", bytes.size(), " bytes, ",
                     program.info.internal_size, " needed"));
  }
  return bytes.data();
}

// Null: it is a network.
const MatmulModel* AsMatmul(const driver::Model& model) {
  return typeid(model) == typeid(MatmulModel)
             ? static_cast<const MatmulModel*>(&model)
             : nullptr;
}

std::span<const LayerTime> TimesOf(const driver::JobRequest& job) {
  if (const MatmulModel* matmul = AsMatmul(*job.model)) {
    return matmul->times(job.program);
  }
  return static_cast<const SoftModel&>(*job.model).program(job.program).times;
}

// Each core of the gang computes slices of its own.
absl::Status RunSlices(const driver::JobRequest& job, const Program& program,
                       const RunMemory& memory, Gang& gang,
                       const base::Clock& clock) {
  const uint32_t batch = program.info.batch;
  const uint32_t parts =
      std::min({batch, gang.size(),
                static_cast<uint32_t>(job.gang_internal.size()) + 1});
  return gang.Share(parts, [&](Part part, std::byte* scratch) -> absl::Status {
    RunMemory own = memory;
    own.scratch = scratch;
    std::span<int64_t> times;
    if (part.index == 0) {
      times = job.layer_times;
    } else {
      RKNND_ASSIGN_OR_RETURN(
          own.arena, ArenaIn(job.gang_internal[part.index - 1], 0, program));
    }
    const Range slices = ShareOf(part, batch);
    return program.RunSlices(static_cast<uint32_t>(slices.begin),
                             static_cast<uint32_t>(slices.size()), own, times,
                             clock);
  });
}

}  // namespace

absl::StatusOr<std::unique_ptr<driver::Device>> OpenSoftDevice(
    const driver::DeviceOptions& options) {
  RKNND_ASSIGN_OR_RETURN(SocProfile soc, FindSoc(options.soc));
  driver::InstallFaultGuard();
  try {
    return std::make_unique<SoftDevice>(soc, options.clock, options.pace);
  } catch (const std::system_error& error) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "no threads for the software NPU's cores: ", error.what()));
  }
}

SoftDevice::SoftDevice(const SocProfile& soc, const base::Clock* clock,
                       bool pace)
    : soc_(soc),
      clock_(clock == nullptr ? monotonic_ : *clock),
      cpus_(CountCpus()) {
  if (pace) pacer_.emplace(soc_, &soc_clock_, &clock_);
  info_.kind = "soft";
  info_.soc = soc.name;
  info_.cores = soc.cores;
  info_.driver = kDriverVersion;
  info_.runtime = kRuntimeVersion;
  info_.sram_total = soc.sram_bytes;
  info_.sram_base = soc.sram_base;
  info_.limits = soc.limits;
  info_.mhz = soc.max_mhz;
  info_.macs_per_cycle = soc.macs_per_cycle;
  info_.compiler = CompilerName(soc);
  for (uint32_t c = 0; c < soc.cores; ++c) {
    cores_.push_back(std::make_unique<Core>());
    if (c == 0) continue;
    cores_[c]->thread = std::make_unique<CoreThread>(c);
  }
}

absl::StatusOr<std::unique_ptr<driver::Model>> SoftDevice::Load(
    const driver::LoadRequest& request) {
  const std::string& name = request.name;
  if (request.compiled.empty() && IsCompiled(request.bytes)) {
    RKNND_ASSIGN_OR_RETURN(driver::ModelInfo info,
                           DescribeCompiled(request.bytes, name));
    return std::make_unique<DescribedModel>(std::move(info));
  }
  SingleThreaded alone;
  // Libraries below throw; and a file that asks for more memory than there is
  // must cost an error, not the process.
  try {
    if (request.compiled.empty() && matmul::IsSpec(request.bytes)) {
      RKNND_ASSIGN_OR_RETURN(std::unique_ptr<MatmulModel> model,
                             MatmulModel::Load(request, soc_));
      RKNND_RETURN_IF_ERROR(GrowScratch(model->scratch_size()));
      return std::unique_ptr<driver::Model>(std::move(model));
    }
    auto loaded = request.compiled.empty()
                      ? SoftModel::Compile(request, soc_, weights_)
                      : Restore(request);
    RKNND_RETURN_IF_ERROR(loaded.status());
    std::unique_ptr<SoftModel> model = *std::move(loaded);
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

absl::StatusOr<std::unique_ptr<SoftModel>> SoftDevice::Restore(
    const driver::LoadRequest& request) {
  auto model = SoftModel::Restore(request, soc_, weights_);
  // Whatever a check has found wrong in it: it is not what was written.
  if (model.ok() || absl::IsDataLoss(model.status()) ||
      absl::IsResourceExhausted(model.status())) {
    return model;
  }
  return absl::DataLossError(model.status().message());
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
  return AttachedMemory::Map(memory, access, cache_calls_->IsDmaBuf(memory.fd));
}

void SoftDevice::EnterWorker() { SingleThreaded::Forever(); }

bool SoftDevice::SetClock(double fraction) {
  soc_clock_.Set(fraction);
  return pacer_.has_value();
}

void SoftDevice::Reset(std::function<void(absl::Status)> done) {
  auto ended = std::make_shared<Era>();
  {
    base::MutexLock lock(era_mutex_);
    era_.swap(ended);
  }
  ++resets_;
  ended->done = std::move(done);
  ended->over = true;
}

void SoftDevice::Submit(const driver::JobRequest& job) {
  const std::shared_ptr<Era> era = CurrentEra();
  driver::JobResult result;
  PacedRun paced;
  if (pacer_.has_value()) {
    paced = StartPaced(job);
    result.started = paced.start;
  } else {
    result.started = clock_.Now();
  }
  try {
    result.status = RunJob(job, {job.stop, &era->over});
  } catch (const std::bad_alloc&) {
    result.status = absl::ResourceExhaustedError("no memory left to run it");
  } catch (const std::exception& error) {
    result.status = absl::InternalError(error.what());
  }
  result.ended = pacer_.has_value()
                     ? FinishPaced(job, paced, result.status.ok())
                     : clock_.Now();
  job.listener->OnJobDone(std::move(result));
}

PacedRun SoftDevice::StartPaced(const driver::JobRequest& job) {
  PacedJob paced;
  paced.core_mask = MaskOf(job);
  paced.submitted = job.submitted;
  if (job.model->info().runnable.ok()) {
    const uint32_t batch = job.model->info().programs[job.program].batch;
    paced.layers = TimesOf(job);
    paced.slices = batch;
    paced.parts =
        std::min({batch, static_cast<uint32_t>(std::popcount(paced.core_mask)),
                  static_cast<uint32_t>(job.gang_internal.size()) + 1});
  }
  return pacer_->Start(paced);
}

base::Nanoseconds SoftDevice::FinishPaced(const driver::JobRequest& job,
                                          const PacedRun& paced, bool ok) {
  // A job that failed has nothing to show for the SoC's time.
  const base::Nanoseconds ended =
      pacer_->Finish(MaskOf(job), ok ? paced.end : 0);
  if (!ok || job.layer_times.empty()) return ended;
  // A job that computed for longer has the times that were measured.
  if (ended > paced.end) return ended;
  // Layers, too, are seen to take what the SoC takes, and no more than the job
  // in all: conversions, which the model knows nothing of, take none.
  const std::span<const LayerTime> times = TimesOf(job);
  const auto modelled = [&](size_t layers, size_t first) {
    return static_cast<double>(
        SimulateProgram(times.subspan(first, layers), soc_, paced.conditions));
  };
  const double all = modelled(times.size(), 0);
  if (all <= 0) return ended;
  const double stretch = static_cast<double>(ended - paced.start) / all;
  const size_t layers = std::min(times.size(), job.layer_times.size());
  for (size_t i = 0; i < layers; ++i) {
    job.layer_times[i] = static_cast<int64_t>(modelled(1, i) * stretch);
  }
  return ended;
}

absl::Status SoftDevice::RunJob(const driver::JobRequest& job,
                                const StopSignal& stop) {
  if (!job.model->info().runnable.ok()) return job.model->info().runnable;
  JobCaches& caches = cores_[job.core]->caches;
  RKNND_RETURN_IF_ERROR(caches.Begin(job, *cache_calls_, cache_count_));
  // Ends what was begun also where a library throws.
  const absl::Cleanup end = [this, &caches] {
    caches.End(*cache_calls_, /*good=*/false).IgnoreError();
  };
  absl::Status status = Compute(job, stop);
  status.Update(caches.End(*cache_calls_, status.ok()));
  return status;
}

absl::Status SoftDevice::Compute(const driver::JobRequest& job,
                                 const StopSignal& stop) {
  // Kept until the job is over: a model that is loaded meanwhile may replace
  // what the cores have.
  std::array<std::shared_ptr<base::Mapping>, Gang::kMaxCores> scratch;
  const uint32_t mask = MaskOf(job);
  for (uint32_t c = 0; c < cores_.size(); ++c) {
    if ((mask >> c & 1) == 0) continue;
    base::MutexLock lock(cores_[c]->mutex);
    scratch[c] = cores_[c]->scratch;
  }
  Gang gang(scratch[job.core]->data());
  for (uint32_t c = job.core + 1; c < cores_.size(); ++c) {
    if (scratch[c] != nullptr && gang.size() < cpus_) {
      gang.Join(cores_[c]->thread.get(), scratch[c]->data());
    }
  }
  if (gang.size() > 1) gang.Rouse();
  if (const MatmulModel* matmul = AsMatmul(*job.model)) {
    return matmul->Run(job, gang, stop, clock_);
  }
  return RunNetwork(job, gang, scratch[job.core]->data(), stop);
}

absl::Status SoftDevice::RunNetwork(const driver::JobRequest& job, Gang& gang,
                                    std::byte* scratch,
                                    const StopSignal& stop) {
  SingleThreaded alone;
  const auto& model = static_cast<const SoftModel&>(*job.model);
  RKNND_RETURN_IF_ERROR(model.Ready());
  const Program& program = model.program(job.program);
  RunMemory memory;
  RKNND_ASSIGN_OR_RETURN(memory.arena,
                         ArenaIn(job.internal, job.internal_offset, program));
  memory.inputs = job.inputs;
  memory.outputs = job.outputs;
  memory.sink = job.layer_sink;
  memory.stop = &stop;
  memory.scratch = scratch;
  if (gang.size() > 1) {
    // One after the other where somebody looks at what they leave.
    if (program.info.batch > 1 && !job.gang_internal.empty() &&
        job.layer_sink == nullptr) {
      return RunSlices(job, program, memory, gang, clock_);
    }
    memory.gang = &gang;
  }
  return program.Run(memory, job.layer_times, clock_);
}

}  // namespace rknnd::soft
