#include "driver/soft/job_caches.h"

#include <cstddef>
#include <cstdint>
#include <span>

namespace rknnd::soft {

using driver::CacheState;
using driver::CpuAccess;
using driver::Direction;

void JobCaches::Add(driver::Memory* memory, CpuAccess access,
                    CacheState::Range range, bool program_does) {
  if (memory == nullptr) return;
  auto* const attached = static_cast<AttachedMemory*>(memory);
  if (attached->caches().coherent()) return;
  Use use{attached, access, range, /*leads=*/true,
          attached->caches().MustSync(access, program_does, range)};
  for (Use& earlier : uses_) {
    if (!earlier.leads || earlier.memory != attached ||
        earlier.access != access) {
      continue;
    }
    earlier.sync = earlier.sync || use.sync;
    use.leads = use.sync = false;
    break;
  }
  uses_.push_back(use);
}

void JobCaches::AddTensors(const driver::JobRequest& job, Direction direction) {
  const bool reads = direction == Direction::kInput;
  const CpuAccess access = reads ? CpuAccess::kRead : CpuAccess::kWrite;
  const bool program_does =
      reads ? job.keep_input_caches : job.keep_output_caches;
  const auto bindings = reads ? job.inputs : job.outputs;
  for (size_t i = 0; i < bindings.size(); ++i) {
    const driver::TensorBinding& binding = bindings[i];
    if (binding.frame != nullptr) {
      // No job writes frames.
      for (const driver::FramePlane& plane : binding.frame->planes) {
        Add(plane.memory, access, {0, UINT64_MAX}, program_does);
      }
      continue;
    }
    if (binding.memory == nullptr ||
        static_cast<AttachedMemory*>(binding.memory)->caches().coherent()) {
      continue;
    }
    // One that does not fit fails in its own layer.
    const auto bytes = job.model->CheckBinding(
        job.program, direction, static_cast<uint32_t>(i), binding.format);
    const CacheState::Range range{
        binding.offset, bytes.ok() ? binding.offset + *bytes : UINT64_MAX};
    Add(binding.memory, access, range, program_does);
  }
}

absl::Status JobCaches::Begin(const driver::JobRequest& job,
                              driver::CacheCalls& calls,
                              driver::CacheSyncCount& count) {
  uses_.clear();
  AddTensors(job, Direction::kInput);
  AddTensors(job, Direction::kOutput);
  for (size_t i = 0; i < uses_.size(); ++i) {
    const Use& use = uses_[i];
    if (!use.leads) continue;
    if (!use.sync) {
      count.CountSkipped();
      continue;
    }
    absl::Status begun = calls.Begin(use.memory->dma_buf(), use.access);
    if (begun.ok()) {
      count.CountDone();
      continue;
    }
    uses_.resize(i);
    End(calls, /*good=*/false).IgnoreError();
    return begun;
  }
  return absl::OkStatus();
}

absl::Status JobCaches::End(driver::CacheCalls& calls, bool good) {
  absl::Status status;
  for (const Use& use : uses_) {
    if (use.sync) status.Update(calls.End(use.memory->dma_buf(), use.access));
  }
  for (const Use& use : uses_) {
    if (use.access == CpuAccess::kRead) continue;
    if (good && status.ok()) {
      use.memory->caches().Written(use.range);
    } else {
      use.memory->caches().Forget();
    }
  }
  uses_.clear();
  return status;
}

}  // namespace rknnd::soft
