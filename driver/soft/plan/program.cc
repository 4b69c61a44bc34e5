#include "driver/soft/plan/program.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "driver/memory/fault_guard.h"
#include "driver/soft/attached_memory.h"
#include "driver/soft/kernels/work.h"
#include "driver/soft/plan/frame_transfer.h"
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

// What ReadInput needs, then the frame's.
size_t FrameScratchStart(const Shape& shape) {
  return (TransferScratch(shape) + 63) / 64 * 64;
}

}  // namespace

size_t InputScratch(const Shape& shape) {
  const size_t frame = FrameScratch(shape);
  return frame == 0 ? TransferScratch(shape) : FrameScratchStart(shape) + frame;
}

absl::Status ReadFrame(const IoPort& port, const driver::Frame& frame,
                       const TensorSpec& inside, std::byte* tensor,
                       std::byte* scratch) {
  const absl::StatusOr<driver::FrameSizes> sizes =
      CheckFrame(port, frame.format);
  if (!sizes.ok()) return sizes.status();
  FramePlanes planes;
  for (size_t p = 0; p < planes.size(); ++p) {
    if ((*sizes)[p] == 0) continue;
    planes[p] = static_cast<const AttachedMemory*>(frame.planes[p].memory)
                    ->From(frame.planes[p].offset);
    if (planes[p].size() < (*sizes)[p]) {
      return TooSmall(port.attr().name, planes[p].size(), (*sizes)[p]);
    }
  }
  size_t gone = 0;
  const auto picture =
      ConvertFrame(frame.format, planes, port.shape(),
                   scratch + FrameScratchStart(port.shape()), &gone);
  if (!picture.has_value()) {
    return absl::DataLossError(absl::StrCat(
        "plane ", gone, " of the frame for input '", port.attr().name,
        "' went away during the job: its file was truncated or punched"));
  }
  const absl::StatusOr<ClientLayout> layout =
      port.Resolve({.type = driver::TensorType::kUint8,
                    .layout = driver::TensorLayout::kNhwc});
  if (!layout.ok()) return layout.status();
  ReadInput(*layout, picture->data(), inside, tensor, scratch,
            port.conversion());
  return absl::OkStatus();
}

absl::Status Program::RunSlices(uint32_t first, uint32_t count,
                                const RunMemory& memory,
                                std::span<int64_t> layer_times,
                                const base::Clock& clock) const {
  std::fill(layer_times.begin(), layer_times.end(), 0);
  std::atomic<bool> torn{false};
  RunMemory own = memory;
  own.torn = &torn;
  const driver::FaultPatch patch(ArenaOf(own), &torn);
  for (uint32_t slice = first; slice < first + count; ++slice) {
    absl::Status status = RunSteps(slice, own, layer_times, clock);
    if (torn.load(std::memory_order_relaxed)) {
      return absl::DataLossError(
          "the internal memory went away during the job: its file was "
          "truncated or punched");
    }
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status Program::RunSteps(uint32_t slice, const RunMemory& memory,
                               std::span<int64_t> layer_times,
                               const base::Clock& clock) const {
  base::Nanoseconds before = layer_times.empty() ? 0 : clock.Now();
  for (const Step& step : steps) {
    if (memory.stop != nullptr && memory.stop->raised()) {
      return memory.stop->Reason();
    }
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
  if (binding.frame != nullptr) {
    return ReadFrame(port, *binding.frame, input_tensors[step.port],
                     memory.arena + operands[step.first_operand].offset,
                     memory.scratch);
  }
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
  const TensorSpec& spec = (reads ? input_tensors : output_tensors)[step.port];
  const Operand& tensor = operands[step.first_operand];
  const auto transfer = [&](Part part, std::byte* scratch) {
    const bool there = driver::Guarded(range, [&] {
      if (reads) {
        ReadInput(*layout, range.data(), spec, memory.arena + tensor.offset,
                  scratch, port.conversion(), part);
      } else {
        WriteOutput(*layout, range.data(), spec,
                    tensor.kind == Operand::Kind::kArena
                        ? memory.arena + tensor.offset
                        : tensor.constant,
                    scratch, port.conversion(), part);
      }
    });
    return there ? absl::OkStatus()
                 : Gone(reads ? "input" : "output", port.attr().name);
  };
  const Work work = {static_cast<int64_t>(range.size() + spec.bytes())};
  const uint32_t cores = memory.gang == nullptr ? 1 : memory.gang->size();
  const uint32_t parts = PartsOf(work, cores, cores);
  if (parts <= 1) return transfer(Part{}, memory.scratch);
  return memory.gang->Share(parts, [&](Part part, std::byte* own) {
    const driver::FaultPatch patch(ArenaOf(memory), memory.torn);
    return transfer(part, own);
  });
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
  if (parts <= 1) {
    return RunStoppable(memory.stop,
                        [&] { return step.kernel->Run(from, to, scratch); });
  }
  // The other cores' scratch has no tables: they read these.
  return memory.gang->Share(parts, [&](Part part, std::byte* own) {
    const driver::FaultPatch patch(ArenaOf(memory), memory.torn);
    return RunStoppable(memory.stop, [&] {
      return step.kernel->RunPart(part, from, to,
                                  part.index == 0 ? scratch : own);
    });
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
