#include "driver/rknpu/emulator/testing/loaded_program.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>

#include "base/status/status.h"
#include "driver/rknpu/file/testing/shared_programs.h"
#include "driver/rknpu/relocated_commands.h"

namespace rknnd::rknpu::testing {
namespace {

// Far apart, so that nothing reaches from one into the next unnoticed.
constexpr uint64_t kConstantsAt = 0x10000000, kPrivateAt = 0x40000000,
                   kInternalAt = 0x50000000, kCommandsAt = 0xe0000000;

uint32_t At(std::span<const uint32_t> shape, size_t i) {
  return i < shape.size() ? shape[i] : 1;
}

}  // namespace

std::unique_ptr<LoadedProgram> LoadedProgram::Load(const std::string& name) {
  std::unique_ptr<LoadedProgram> program(new LoadedProgram);
  program->bytes_ = ReadShared(name);
  if (program->bytes_.empty()) return nullptr;
  auto file = Read(program->bytes_);
  if (!file.ok()) std::abort();
  program->file_ = *std::move(file);
  auto placement = PlaceTensors(program->file_);
  if (!placement.ok()) std::abort();
  program->placement_ = *std::move(placement);
  const ProgramFile& read = program->file_;
  program->constants_.resize(program->placement_.constant_bytes);
  FillMemory(read, program->placement_, Home::kConstants, program->constants_);
  program->private_.resize(program->placement_.private_bytes);
  FillMemory(read, program->placement_, Home::kPrivate, program->private_);
  program->internal_.resize(read.internal_bytes);
  program->commands_.resize(read.commands.size());
  const AddressWords words(read);
  RelocatedCommands commands(read, words, program->commands_, kCommandsAt);
  commands.MoveAll(
      AddressesOf(program->placement_, {.constants = kConstantsAt,
                                        .private_memory = kPrivateAt,
                                        .internal = kInternalAt}));
  const auto attach = [&](uint64_t at, std::span<std::byte> memory,
                          bool writable) {
    if (memory.empty()) return;
    if (!program->memory_.Attach({at, memory, writable}).ok()) std::abort();
  };
  attach(kConstantsAt, program->constants_, false);
  attach(kPrivateAt, program->private_, true);
  attach(kInternalAt, program->internal_, true);
  attach(kCommandsAt, std::as_writable_bytes(std::span(program->commands_)),
         false);
  return program;
}

const Tensor& LoadedProgram::TensorOf(const std::string& name) const {
  for (const Tensor& tensor : file_.tensors) {
    if (tensor.name == name) return tensor;
  }
  std::abort();
}

std::span<std::byte> LoadedProgram::BytesOf(const Tensor& tensor) {
  return std::span(internal_).subspan(tensor.offset, tensor.bytes);
}

std::vector<std::byte> LoadedProgram::LogicalOf(const Tensor& tensor) {
  const std::span<const std::byte> from = BytesOf(tensor);
  const size_t size = ElementBytes(tensor.type);
  const size_t in_atom = 16 / size;
  const uint32_t channels = At(tensor.shape, 1), height = At(tensor.shape, 2),
                 width = At(tensor.shape, 3);
  const size_t pixels = size_t{height} * width;
  const size_t surface = pixels == 1 ? 1 : (pixels + 3) / 4 * 4;
  std::vector<std::byte> to(channels * pixels * size);
  for (size_t c = 0; c < channels; ++c) {
    for (size_t p = 0; p < pixels; ++p) {
      std::memcpy(
          &to[(c * pixels + p) * size],
          &from[((c / in_atom * surface + p) * in_atom + c % in_atom) * size],
          size);
    }
  }
  return to;
}

void LoadedProgram::SetImage(const Tensor& tensor,
                             std::span<const std::byte> image) {
  const uint32_t width = tensor.native_shape[3],
                 channels = tensor.native_shape[4];
  const size_t line = size_t{width} * channels;
  const size_t pitch = size_t{(width + 15) / 16 * 16} * channels;
  const std::span<std::byte> to = BytesOf(tensor);
  for (size_t y = 0; y * line < image.size(); ++y) {
    std::copy_n(&image[y * line], line, &to[y * pitch]);
  }
}

void LoadedProgram::ClearInternal() {
  std::fill(internal_.begin(), internal_.end(), std::byte{0});
}

absl::Status LoadedProgram::RunRanges(Machine& machine,
                                      std::span<const TaskRange> ranges,
                                      const RunOptions& options) {
  std::array<std::vector<Task>, kCores> tasks;
  std::array<std::span<const Task>, kCores> lists;
  for (size_t i = 0; i < ranges.size(); ++i) {
    for (uint32_t k = 0; k < ranges[i].count; ++k) {
      const TaskEntry& entry = file_.tasks[ranges[i].first + k];
      tasks[i].push_back({entry.node, entry.enable_mask, entry.interrupt_mask,
                          entry.words, kCommandsAt + entry.commands});
    }
    lists[i] = tasks[i];
  }
  return machine.Run(memory_, lists, options);
}

absl::Status LoadedProgram::Run(Machine& machine, uint32_t cores,
                                const RunOptions& options) {
  const auto steps = MakeSchedule(file_, cores);
  if (!steps.ok()) return steps.status();
  for (const Step& step : *steps) {
    if (step.on_cpu) continue;
    RKNND_RETURN_IF_ERROR(
        RunRanges(machine, std::span(step.piece.ranges).first(step.piece.cores),
                  options));
  }
  return absl::OkStatus();
}

absl::Status LoadedProgram::RunByNode(
    Machine& machine, uint32_t cores, const RunOptions& options,
    const std::function<void(uint32_t node)>& after) {
  for (uint32_t n = 0; n < file_.nodes.size(); ++n) {
    const Node& node = file_.nodes[n];
    std::array<TaskRange, kCores> ranges;
    bool any = false;
    for (size_t i = 0; i < file_.lists.size() && i < node.task_counts.size();
         ++i) {
      const TaskList& list = file_.lists[i];
      if (list.cores != cores) continue;
      ranges[list.core] = {node.first_tasks[i], node.task_counts[i]};
      any = any || node.task_counts[i] != 0;
    }
    if (!any) continue;
    RKNND_RETURN_IF_ERROR(
        RunRanges(machine, std::span(ranges).first(cores), options));
    after(n);
  }
  return absl::OkStatus();
}

}  // namespace rknnd::rknpu::testing
