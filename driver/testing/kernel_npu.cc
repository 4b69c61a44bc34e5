#include "driver/testing/kernel_npu.h"

#include <bit>
#include <utility>

#include "base/posix/mapping.h"
#include "base/status/status.h"
#include "driver/compound_device.h"
#include "driver/rknpu/kernel/kernel_backend.h"
#include "driver/soft/soft_device.h"

namespace rknnd::driver::testing {
namespace {

class KeepResult final : public JobListener {
 public:
  void OnJobDone(JobResult result) override {
    status = std::move(result.status);
  }
  absl::Status status = absl::InternalError("the job was not answered");
};

}  // namespace

struct KernelNpu::Buffer {
  base::UniqueFd fd;
  base::Mapping mapping;  // a program's
  std::unique_ptr<Memory> memory;
};

KernelNpu::KernelNpu() = default;
KernelNpu::~KernelNpu() = default;

absl::StatusOr<std::unique_ptr<KernelNpu>> KernelNpu::Open(
    rknpu::KernelCalls& kernel, CacheCalls* calls) {
  std::unique_ptr<KernelNpu> npu(new KernelNpu);
  RKNND_ASSIGN_OR_RETURN(
      std::unique_ptr<Device> soft,
      soft::OpenSoftDevice({.kind = "soft", .soc = "rk3588"}));
  if (calls != nullptr) {
    static_cast<soft::SoftDevice&>(*soft).set_cache_calls(calls);
  }
  RKNND_ASSIGN_OR_RETURN(const rknpu::NpuNode node, rknpu::FindNpuNode(kernel));
  RKNND_ASSIGN_OR_RETURN(std::unique_ptr<rknpu::KernelBackend> backend,
                         rknpu::KernelBackend::Open(kernel, node, {}));
  npu->heap_ = backend->MakeHeap();
  CompoundParts parts;
  parts.soft = std::move(soft);
  parts.platform = "rk3588";
  parts.backend = std::move(backend);
  parts.npu = {"rknpu", "0.9.8"};
  npu->device_ = MakeCompoundDevice(std::move(parts), nullptr);
  return npu;
}

absl::StatusOr<std::unique_ptr<KernelNpu::Buffer>> KernelNpu::Allocate(
    uint64_t bytes) {
  RKNND_ASSIGN_OR_RETURN(Allocation allocation, heap_->Allocate(bytes));
  auto buffer = std::make_unique<Buffer>();
  RKNND_ASSIGN_OR_RETURN(
      buffer->mapping,
      base::ToStatusOr(base::Mapping::OfFd(allocation.fd.get(), 0,
                                           static_cast<size_t>(allocation.size),
                                           base::Mapping::Access::kReadWrite)));
  RKNND_ASSIGN_OR_RETURN(buffer->memory,
                         device_->Attach({.fd = allocation.fd.get(),
                                          .size = allocation.size,
                                          .origin = MemoryOrigin::kCachedHeap},
                                         MemoryAccess::kReadWrite));
  buffer->fd = std::move(allocation.fd);
  return buffer;
}

absl::Status KernelNpu::Load(std::span<const std::byte> file) {
  RKNND_ASSIGN_OR_RETURN(
      model_, device_->Load({.bytes = file, .options = "", .name = "network"}));
  RKNND_RETURN_IF_ERROR(model_->info().runnable);
  const ProgramInfo& program = model_->info().programs[0];
  for (const Direction direction : {Direction::kInput, Direction::kOutput}) {
    const bool reads = direction == Direction::kInput;
    const size_t count = reads ? program.inputs.size() : program.outputs.size();
    for (uint32_t i = 0; i < count; ++i) {
      TensorBinding binding;
      binding.format = {
          .type = reads ? TensorType::kUint8 : TensorType::kInt8,
          .layout = reads ? TensorLayout::kNhwc : TensorLayout::kNchw};
      RKNND_ASSIGN_OR_RETURN(
          const uint64_t bytes,
          model_->CheckBinding(0, direction, i, binding.format));
      RKNND_ASSIGN_OR_RETURN(std::unique_ptr<Buffer> buffer, Allocate(bytes));
      binding.memory = buffer->memory.get();
      (reads ? inputs_ : outputs_).push_back(std::move(buffer));
      (reads ? input_bindings_ : output_bindings_).push_back(binding);
    }
  }
  RKNND_ASSIGN_OR_RETURN(arena_, Allocate(program.internal_size));
  return absl::OkStatus();
}

std::span<std::byte> KernelNpu::input() { return inputs_[0]->mapping.bytes(); }

std::span<const std::byte> KernelNpu::output() {
  return outputs_[0]->mapping.bytes();
}

absl::Status KernelNpu::Run(uint32_t cores) {
  KeepResult listener;
  JobRequest job;
  job.model = model_.get();
  job.core = static_cast<uint32_t>(std::countr_zero(cores));
  job.core_mask = cores;
  job.inputs = input_bindings_;
  job.outputs = output_bindings_;
  job.internal = arena_->memory.get();
  job.listener = &listener;
  device_->Submit(job);
  return listener.status;
}

}  // namespace rknnd::driver::testing
