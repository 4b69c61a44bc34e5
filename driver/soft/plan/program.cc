#include "driver/soft/plan/program.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "driver/memory/cache_sync.h"
#include "driver/memory/fault_guard.h"
#include "driver/soft/attached_memory.h"
#include "driver/soft/plan/io_transfer.h"

namespace rknnd::soft {
namespace {

absl::Status Gone(const char* direction, const std::string& name) {
  return absl::DataLossError(
      absl::StrCat("the memory bound to ", direction, " '", name,
                   "' went away during the job: its file was truncated or "
                   "punched"));
}

absl::Status TooSmall(const std::string& name, uint64_t there,
                      uint64_t needed) {
  return absl::InvalidArgumentError(absl::StrCat("the memory bound to '", name,
                                                 "' has ", there, " bytes, ",
                                                 needed, " needed"));
}

}  // namespace

absl::Status Program::RunSlices(uint32_t first, uint32_t count,
                                const RunMemory& memory,
                                std::span<int64_t> layer_times,
                                const base::Clock& clock) const {
  std::fill(layer_times.begin(), layer_times.end(), 0);
  for (uint32_t slice = first; slice < first + count; ++slice) {
    absl::Status status = RunSteps(slice, memory, layer_times, clock);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status Program::RunSteps(uint32_t slice, const RunMemory& memory,
                               std::span<int64_t> layer_times,
                               const base::Clock& clock) const {
  base::Nanoseconds before = layer_times.empty() ? 0 : clock.Now();
  for (const Step& step : steps) {
    absl::Status status = step.kind == Step::Kind::kKernel
                              ? Compute(step, memory)
                              : Transfer(step, slice, memory);
    if (status.ok() && memory.sink != nullptr) status = Show(step, memory);
    if (!status.ok()) {
      return status;
    }
    if (layer_times.empty()) continue;
    base::Nanoseconds after = clock.Now();
    if (step.layer < layer_times.size()) {
      layer_times[step.layer] += after - before;
    }
    before = after;
  }
  return stop;
}

absl::Status Program::Transfer(const Step& step, uint32_t slice,
                               const RunMemory& memory) const {
  const bool reads = step.kind == Step::Kind::kInput;
  const IoPort& port = (reads ? inputs : outputs)[step.port];
  const driver::TensorBinding& binding =
      (reads ? memory.inputs : memory.outputs)[step.port];
  absl::StatusOr<ClientLayout> layout = port.Resolve(binding.format);
  if (!layout.ok()) return layout.status();
  const auto& client = static_cast<const AttachedMemory&>(*binding.memory);
  std::span<std::byte> range = client.From(binding.offset);
  if (range.size() < layout->bytes) {
    return TooSmall(port.attr().name, range.size(), layout->bytes);
  }
  if (!reads && !client.writable()) {
    return absl::FailedPreconditionError(
        absl::StrCat("the memory bound to output '", port.attr().name,
                     "' was attached for reading only"));
  }
  range = range.subspan(static_cast<size_t>(slice * layout->slice_step),
                        static_cast<size_t>(layout->slice_bytes));
  const auto access =
      reads ? driver::CpuAccess::kRead : driver::CpuAccess::kWrite;
  if (client.dma_buf() >= 0) {
    absl::Status status = driver::BeginCpuAccess(client.dma_buf(), access);
    if (!status.ok()) return status;
  }
  const TensorSpec& spec = (reads ? input_tensors : output_tensors)[step.port];
  const Operand& tensor = operands[step.first_operand];
  const bool there = driver::Guarded(range, [&] {
    if (reads) {
      ReadInput(*layout, range.data(), spec, memory.arena + tensor.offset,
                memory.scratch, port.conversion());
    } else {
      WriteOutput(*layout, range.data(), spec,
                  tensor.kind == Operand::Kind::kArena
                      ? memory.arena + tensor.offset
                      : tensor.constant,
                  memory.scratch, port.conversion());
    }
  });
  if (client.dma_buf() >= 0) {
    absl::Status status = driver::EndCpuAccess(client.dma_buf(), access);
    if (!status.ok()) return status;
  }
  return there ? absl::OkStatus()
               : Gone(reads ? "input" : "output", port.attr().name);
}

absl::Status Program::Compute(const Step& step, const RunMemory& memory) const {
  // The tables of pointers lie at the start of scratch, which is private.
  auto** in = reinterpret_cast<const std::byte**>(memory.scratch);
  auto** out = reinterpret_cast<std::byte**>(memory.scratch) + step.inputs;
  const Operand* operand = operands.data() + step.first_operand;
  for (uint32_t i = 0; i < step.inputs; ++i, ++operand) {
    in[i] = operand->kind == Operand::Kind::kArena
                ? memory.arena + operand->offset
                : operand->constant;
  }
  for (uint32_t i = 0; i < step.outputs; ++i, ++operand) {
    out[i] = operand->kind == Operand::Kind::kArena
                 ? memory.arena + operand->offset
                 : nullptr;
  }
  uint64_t tables = (uint64_t{step.inputs} + step.outputs) * sizeof(void*);
  std::byte* scratch = memory.scratch + (tables + 63) / 64 * 64;
  const std::span<const std::byte* const> from(in, step.inputs);
  const std::span<std::byte* const> to(out, step.outputs);
  const uint32_t parts =
      memory.gang == nullptr ? 1 : step.kernel->PartsFor(memory.gang->size());
  if (parts <= 1) return step.kernel->Run(from, to, scratch);
  // The other cores' scratch has no tables: they read these.
  return memory.gang->Share(parts, [&](Part part, std::byte* own) {
    return step.kernel->RunPart(part, from, to,
                                part.index == 0 ? scratch : own);
  });
}

absl::Status Program::Show(const Step& step, const RunMemory& memory) const {
  const auto index = static_cast<uint32_t>(&step - steps.data());
  auto next = std::lower_bound(
      dumped.begin(), dumped.end(), index,
      [](const DumpedOperand& entry, uint32_t at) { return entry.step < at; });
  for (; next != dumped.end() && next->step == index; ++next) {
    const Operand& operand = operands[next->operand];
    if (operand.kind == Operand::Kind::kNone) continue;
    absl::Status status = DumpTensor(*next, step.layer,
                                     operand.kind == Operand::Kind::kArena
                                         ? memory.arena + operand.offset
                                         : operand.constant,
                                     *memory.sink);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace rknnd::soft
