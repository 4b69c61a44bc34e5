// Loading: what happens once a model. Running is in rknpu_run.cc.

#include "driver/rknpu/device/rknpu_model.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status/status.h"
#include "base/values/model_options.h"
#include "driver/memory/fault_guard.h"
#include "driver/rknpu/checker.h"
#include "driver/rknpu/device/internal_tensors.h"
#include "driver/soft/attached_memory.h"
#include "driver/soft/plan/frame_transfer.h"

namespace rknnd::rknpu {
namespace {

constexpr char kPlatform[] = "rk3588";

std::string FirstShape(const ProgramFile& file,
                       const std::vector<uint32_t>& tensors) {
  return tensors.empty() ? "" : ShapeText(file.tensors[tensors[0]].shape);
}

uint64_t BytesOf(const ProgramFile& file,
                 const std::vector<uint32_t>& tensors) {
  uint64_t bytes = 0;
  for (const uint32_t t : tensors) bytes += file.tensors[t].bytes;
  return bytes;
}

std::vector<driver::LayerInfo> LayersOf(const ProgramFile& file,
                                        std::span<const TaskCost> costs,
                                        uint32_t mhz, const char* stand_in) {
  std::vector<driver::LayerInfo> layers;
  for (const Node& node : file.nodes) {
    const TaskCost& cost = costs[layers.size()];
    driver::LayerInfo layer;
    layer.name = node.name;
    layer.type = node.type;
    layer.input_shape = FirstShape(file, node.inputs);
    layer.output_shape = FirstShape(file, node.outputs);
    const std::vector<uint32_t>& typed =
        node.outputs.empty() ? node.inputs : node.outputs;
    if (!typed.empty()) {
      layer.data_type = ReportedType(file.tensors[typed[0]].type);
    }
    const bool has_tasks =
        !node.task_counts.empty() && node.task_counts[0] != 0;
    // Where there is an NPU nobody asks what the CPU does its part with.
    const bool has_npu = *stand_in == '\0';
    layer.kernel = has_tasks || has_npu ? stand_in : "loops";
    layer.on_cpu = !has_tasks;
    layer.splits = node.task_counts.size() > 2 && node.task_counts[2] != 0;
    layer.ddr_read = has_tasks ? cost.bytes_read : BytesOf(file, node.inputs);
    layer.ddr_bytes =
        layer.ddr_read +
        (has_tasks ? cost.bytes_written : BytesOf(file, node.outputs));
    layer.macs = cost.macs;
    layer.npu_cycles = cost.computing_cycles;
    layer.ddr_cycles = cost.moving_cycles;
    if (mhz != 0) {
      layer.modelled = static_cast<base::Nanoseconds>(
          std::max(layer.npu_cycles, layer.ddr_cycles) * 1000 / mhz);
    }
    layers.push_back(std::move(layer));
  }
  return layers;
}

}  // namespace

absl::StatusOr<std::unique_ptr<RknpuModel>> RknpuModel::Load(
    const driver::LoadRequest& request, const NpuInfo& npu, Backend& backend) {
  std::unique_ptr<RknpuModel> model(new RknpuModel);
  model->backend_ = &backend;
  RKNND_ASSIGN_OR_RETURN(model->file_, base::ToStatusOr(Read(request.bytes)));
  const ProgramFile& file = model->file_;
  if (file.platform != kPlatform || npu.platform != kPlatform) {
    return absl::UnimplementedError(absl::StrCat(
        "it is a program for '", file.platform, "', and this NPU is one of '",
        npu.platform, "': only programs for '", kPlatform,
        "' can be run, where the NPU is one"));
  }
  RKNND_RETURN_IF_ERROR(model->CutAtCustomOperators(request));
  RKNND_ASSIGN_OR_RETURN(model->placement_, PlaceTensors(file));
  RKNND_RETURN_IF_ERROR(model->MakePorts());
  RKNND_RETURN_IF_ERROR(model->MakeSteps(npu.cores));
  RKNND_RETURN_IF_ERROR(model->PlaceConstants(backend));
  RKNND_RETURN_IF_ERROR(model->MakeCores(npu.cores, backend));
  RKNND_RETURN_IF_ERROR(model->Survey(backend));
  model->Describe(request.name, npu);
  // They point into the request's bytes.
  for (Tensor& tensor : model->file_.tensors) tensor.data = {};
  for (Node& node : model->file_.nodes) node.custom_attributes = {};
  return model;
}

absl::Status RknpuModel::CutAtCustomOperators(
    const driver::LoadRequest& request) {
  RKNND_ASSIGN_OR_RETURN(
      const base::ModelOptionsText text,
      base::ToStatusOr(base::SplitModelOptions(request.options)));
  const std::vector<std::string> types =
      text.custom ? text.custom->types : std::vector<std::string>();
  RKNND_ASSIGN_OR_RETURN(custom_, CustomParts::Of(file_, types));
  if (custom_.empty()) {
    if (text.custom && text.custom->part.value_or(0) != 0) {
      return absl::InvalidArgumentError("the model has no custom operators");
    }
    return absl::OkStatus();
  }
  if (file_.batch > 1) {
    return absl::UnimplementedError(
        "a compiled model with a batch cannot have custom operators");
  }
  if (text.custom) part_ = text.custom->part;
  if (part_) return custom_.CutPorts(*part_, file_);
  info_.custom_operators = custom_.Describe(file_);
  stop_ = absl::UnimplementedError(
      absl::StrCat(custom_.First(file_),
                   " has nobody who computes it: register it with "
                   "rknn_register_custom_ops"));
  return absl::OkStatus();
}

absl::Status RknpuModel::MakePorts() {
  for (uint32_t i = 0; i < file_.inputs.size(); ++i) {
    RKNND_ASSIGN_OR_RETURN(Port port,
                           Port::Make(file_, driver::Direction::kInput, i));
    inputs_.push_back(std::move(port));
  }
  for (uint32_t i = 0; i < file_.outputs.size(); ++i) {
    RKNND_ASSIGN_OR_RETURN(Port port,
                           Port::Make(file_, driver::Direction::kOutput, i));
    outputs_.push_back(std::move(port));
  }
  return absl::OkStatus();
}

absl::Status RknpuModel::MakeSteps(uint32_t cores) {
  for (uint32_t set = 1; set <= std::min(cores, kMostCores); ++set) {
    if (!HasLists(file_, set)) continue;
    RKNND_ASSIGN_OR_RETURN(schedules_[set - 1], MakeSchedule(file_, set));
    if (!part_) continue;
    schedules_[set - 1] =
        custom_.StepsOf(*part_, std::move(schedules_[set - 1]));
  }
  RKNND_ASSIGN_OR_RETURN(const CheckedPorts checked,
                         CheckProgram(file_, placement_, schedules_));
  cpu_nodes_.resize(file_.nodes.size());
  for (const std::vector<Step>& schedule : schedules_) {
    for (const Step& step : schedule) {
      if (!step.on_cpu || cpu_nodes_[step.node].has_value() ||
          custom_.Has(step.node)) {
        continue;
      }
      RKNND_ASSIGN_OR_RETURN(cpu_nodes_[step.node],
                             CpuNode::Make(file_, step.node));
    }
  }
  AllowDirect(checked);
  return absl::OkStatus();
}

// A tensor that is several ports, or that the CPU computes with, has one place.
void RknpuModel::AllowDirect(const CheckedPorts& checked) {
  std::vector<uint32_t> uses(file_.tensors.size());
  for (const auto* list : {&file_.inputs, &file_.outputs}) {
    for (const uint32_t t : *list) ++uses[t];
  }
  for (size_t n = 0; n < cpu_nodes_.size(); ++n) {
    if (!cpu_nodes_[n].has_value()) continue;
    for (const auto* list : {&file_.nodes[n].inputs, &file_.nodes[n].outputs}) {
      for (const uint32_t t : *list) ++uses[t];
    }
  }
  for (auto* ports : {&inputs_, &outputs_}) {
    for (Port& port : *ports) {
      const uint32_t t = port.tensor();
      if (uses[t] == 1 && checked.may_be_bound[t]) {
        port.AllowDirect(static_cast<uint64_t>(checked.touched[t]));
      }
    }
  }
}

absl::Status RknpuModel::PlaceConstants(Backend& backend) {
  RKNND_ASSIGN_OR_RETURN(constants_,
                         backend.Allocate(placement_.constant_bytes));
  FillMemory(file_, placement_, Home::kConstants, constants_->bytes());
  return backend.Sync(*constants_, 0, constants_->bytes().size(),
                      SyncSide::kToNpu);
}

absl::Status RknpuModel::MakeCores(uint32_t cores, Backend& backend) {
  address_words_.emplace(file_);
  for (const auto* ports : {&inputs_, &outputs_}) {
    for (const Port& port : *ports) {
      scratch_bytes_ = std::max(scratch_bytes_, port.scratch_bytes());
    }
  }
  const uint64_t command_bytes = file_.commands.size() * sizeof(uint64_t);
  held_ = placement_.constant_bytes +
          cores * (placement_.private_bytes + command_bytes +
                   file_.tasks.size() * kTaskEntryBytes);
  for (uint32_t c = 0; c < cores; ++c) {
    auto core = std::make_unique<Core>();
    RKNND_ASSIGN_OR_RETURN(core->private_memory,
                           backend.Allocate(placement_.private_bytes));
    FillMemory(file_, placement_, Home::kPrivate,
               core->private_memory->bytes());
    RKNND_RETURN_IF_ERROR(backend.Sync(*core->private_memory, 0,
                                       core->private_memory->bytes().size(),
                                       SyncSide::kToNpu));
    RKNND_ASSIGN_OR_RETURN(core->commands, backend.Allocate(command_bytes));
    core->relocated = std::make_unique<RelocatedCommands>(
        file_, *address_words_,
        std::span(reinterpret_cast<uint64_t*>(core->commands->bytes().data()),
                  file_.commands.size()),
        core->commands->address());
    core->relocated->MoveAll(AddressesOf(
        placement_, {.constants = constants_->address(),
                     .private_memory = core->private_memory->address()}));
    RKNND_ASSIGN_OR_RETURN(
        core->table,
        backend.PlaceTable(file_.tasks, core->commands->address()));
    cores_.push_back(std::move(core));
  }
  return absl::OkStatus();
}

// Every task of every list, so that what cannot be run is told before it is
// tried. Costs are those of the list for one core.
absl::Status RknpuModel::Survey(Backend& backend) {
  costs_.resize(file_.nodes.size());
  for (size_t set = 0; set < schedules_.size(); ++set) {
    for (const Step& step : schedules_[set]) {
      if (step.on_cpu) continue;
      std::vector<TaskCost> costs;
      RKNND_RETURN_IF_ERROR(SurveyPiece(step.piece, backend, costs));
      if (set != 0) continue;
      for (const TaskCost& cost : costs) {
        TaskCost& sum = costs_[cost.node];
        sum.macs += cost.macs;
        sum.bytes_read += cost.bytes_read;
        sum.bytes_written += cost.bytes_written;
        sum.computing_cycles += cost.computing_cycles;
        sum.moving_cycles += cost.moving_cycles;
        sum.expected += cost.expected;
      }
    }
  }
  return absl::OkStatus();
}

absl::Status RknpuModel::SurveyPiece(const Piece& piece, Backend& backend,
                                     std::vector<TaskCost>& costs) const {
  std::array<CoreTasks, kMostCores> cores;
  for (uint32_t c = 0; c < piece.cores; ++c) cores[c] = {c, piece.ranges[c]};
  const ReachableMemory commands = {cores_[0]->commands.get(), false};
  const absl::Status status =
      backend.Survey({.table = cores_[0]->table.get(),
                      .cores = std::span(cores).first(piece.cores),
                      .memory = {&commands, 1}},
                     costs);
  if (status.ok()) return status;
  // The cores step together, task by task.
  const size_t task = piece.ranges[costs.size() % piece.cores].first +
                      costs.size() / piece.cores;
  return base::Annotate(
      status,
      absl::StrCat("layer '", file_.nodes[file_.tasks[task].node].name, "'"));
}

void RknpuModel::Describe(const std::string& name, const NpuInfo& npu) {
  info_.name = name;
  info_.weight_size = file_.weight_bytes;
  info_.target_platform = file_.platform;
  info_.run_by = "rknpu";
  info_.run_by_because = "rknnd's own executor can run it";
  driver::ProgramInfo program;
  for (const Port& port : inputs_) {
    program.inputs.push_back(port.attr());
    program.native_inputs.push_back(port.native());
  }
  for (const Port& port : outputs_) {
    program.outputs.push_back(port.attr());
    program.native_outputs.push_back(port.native());
  }
  program.internal_size = file_.internal_bytes;
  program.batch = file_.batch;
  program.layers = LayersOf(file_, costs_, npu.mhz, backend_->stand_in());
  for (size_t n = 0; n < costs_.size(); ++n) {
    program.modelled += program.layers[n].modelled;
    // Of what the CPU does, about a byte a nanosecond.
    program.expected +=
        program.layers[n].on_cpu
            ? static_cast<base::Nanoseconds>(program.layers[n].ddr_bytes)
            : costs_[n].expected;
  }
  program.expected = std::max(program.expected, program.modelled);
  program.tensors = InternalTensors(file_);
  program.sram = PlanSramOf(program, npu.sram_bytes);
  info_.programs.push_back(std::move(program));
}

absl::StatusOr<uint64_t> RknpuModel::CheckBinding(
    uint32_t /*program*/, driver::Direction direction, uint32_t index,
    const driver::TensorFormat& format) const {
  const Port& port =
      direction == driver::Direction::kInput ? inputs_[index] : outputs_[index];
  RKNND_ASSIGN_OR_RETURN(const soft::ClientLayout layout,
                         port.io().Resolve(format));
  return layout.bytes;
}

driver::SramPlan RknpuModel::PlanSram(uint32_t program, uint64_t bytes) const {
  return PlanSramOf(info_.programs[program], bytes);
}

absl::StatusOr<driver::FrameSizes> RknpuModel::CheckFrame(
    uint32_t /*program*/, uint32_t index,
    const driver::FrameFormat& frame) const {
  return soft::CheckFrame(inputs_[index].io(), frame);
}

absl::Status RknpuModel::CopyWeights(driver::Memory& to,
                                     uint64_t offset) const {
  auto& memory = static_cast<soft::AttachedMemory&>(to);
  const std::span<std::byte> room = memory.From(offset);
  const auto size = static_cast<size_t>(info_.weight_size);
  if (room.size() < size || !memory.writable()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "memory for a copy of the weights has ", room.size(), " bytes",
        memory.writable() ? ", " : " to read, ", size, " to write are needed"));
  }
  const std::span<std::byte> copy = room.first(size);
  const std::span<const std::byte> weights = constants_->bytes();
  if (driver::Guarded(copy, [&] {
        std::copy_n(weights.begin(), copy.size(), copy.begin());
      })) {
    return absl::OkStatus();
  }
  return absl::DataLossError(
      "the weight memory went away while it was filled: its file was truncated "
      "or punched");
}

}  // namespace rknnd::rknpu
