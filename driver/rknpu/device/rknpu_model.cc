// Loading: what happens once a model. Running is in rknpu_run.cc.

#include "driver/rknpu/device/rknpu_model.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status/status.h"
#include "driver/memory/fault_guard.h"
#include "driver/rknpu/checker.h"
#include "driver/soft/attached_memory.h"
#include "driver/soft/plan/frame_transfer.h"

namespace rknnd::rknpu {
namespace {

constexpr char kPlatform[] = "rk3588";

std::string ShapeText(const std::vector<uint32_t>& shape) {
  return absl::StrJoin(shape, ",");
}

// As the vendor's tables name them.
const char* ReportedType(ElementType type) {
  switch (type) {
    case ElementType::kInt8:
      return "INT8";
    case ElementType::kFloat16:
      return "FLOAT16";
    case ElementType::kFloat32:
      return "FLOAT32";
    case ElementType::kInt16:
      return "INT16";
    case ElementType::kInt32:
      return "INT32";
    case ElementType::kInt64:
      return "INT64";
    case ElementType::kNone:
    case ElementType::kWords:
      break;
  }
  return "";
}

std::string FirstShape(const ProgramFile& file,
                       const std::vector<uint32_t>& tensors) {
  return tensors.empty() ? "" : ShapeText(file.tensors[tensors[0]].shape);
}

std::vector<driver::LayerInfo> LayersOf(const ProgramFile& file) {
  std::vector<driver::LayerInfo> layers;
  for (const Node& node : file.nodes) {
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
    layer.kernel = has_tasks ? "NPU program" : "loops";
    layer.on_cpu = !has_tasks;
    layer.splits = node.task_counts.size() > 2 && node.task_counts[2] != 0;
    layers.push_back(std::move(layer));
  }
  return layers;
}

driver::TensorPlace PlaceOf(const Tensor& tensor, uint32_t node) {
  driver::TensorPlace place;
  place.name = tensor.name;
  place.data_type = ReportedType(tensor.type);
  place.shape = ShapeText(tensor.shape);
  place.native_shape = ShapeText(tensor.native_shape);
  place.offset = tensor.offset;
  place.size = tensor.bytes;
  place.first = node;
  return place;
}

// Tensors of internal memory, by the first node that has them.
std::vector<driver::TensorPlace> PlacesOf(const ProgramFile& file) {
  constexpr uint32_t kNone = UINT32_MAX;
  std::vector<driver::TensorPlace> places;
  std::vector<uint32_t> found(file.tensors.size(), kNone);
  const auto add = [&](uint32_t node, uint32_t t, bool reads) {
    const Tensor& tensor = file.tensors[t];
    if (!tensor.in_internal_memory()) return;
    if (found[t] == kNone) {
      found[t] = static_cast<uint32_t>(places.size());
      places.push_back(PlaceOf(tensor, node));
      places.back().storage = found[t];
    }
    driver::TensorPlace& place = places[found[t]];
    place.last = node;
    if (!reads) {
      place.written += tensor.bytes;
      return;
    }
    if (place.read == 0) place.user = node;
    place.read += tensor.bytes;
  };
  for (uint32_t n = 0; n < file.nodes.size(); ++n) {
    for (const uint32_t t : file.nodes[n].inputs) add(n, t, true);
    for (const uint32_t t : file.nodes[n].outputs) add(n, t, false);
  }
  return places;
}

}  // namespace

absl::StatusOr<std::unique_ptr<RknpuModel>> RknpuModel::Load(
    const driver::LoadRequest& request, const std::string& platform,
    uint32_t cores, Backend& backend) {
  std::unique_ptr<RknpuModel> model(new RknpuModel);
  model->backend_ = &backend;
  RKNND_ASSIGN_OR_RETURN(model->file_, base::ToStatusOr(Read(request.bytes)));
  const ProgramFile& file = model->file_;
  if (file.platform != kPlatform || platform != kPlatform) {
    return absl::UnimplementedError(absl::StrCat(
        "it is a program for '", file.platform, "', and this NPU is one of '",
        platform, "': only programs for '", kPlatform,
        "' can be run, where the NPU is one"));
  }
  RKNND_ASSIGN_OR_RETURN(model->placement_, PlaceTensors(file));
  RKNND_RETURN_IF_ERROR(model->MakePorts());
  RKNND_RETURN_IF_ERROR(model->MakeSteps(cores));
  RKNND_RETURN_IF_ERROR(model->PlaceConstants(backend));
  RKNND_RETURN_IF_ERROR(model->MakeCores(cores, backend));
  model->Describe(request.name);
  // They point into the request's bytes.
  for (Tensor& tensor : model->file_.tensors) tensor.data = {};
  for (Node& node : model->file_.nodes) node.custom_attributes = {};
  return model;
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
  }
  RKNND_RETURN_IF_ERROR(CheckProgram(file_, placement_, schedules_).status());
  cpu_nodes_.resize(file_.nodes.size());
  for (const std::vector<Step>& schedule : schedules_) {
    for (const Step& step : schedule) {
      if (!step.on_cpu || cpu_nodes_[step.node].has_value()) continue;
      RKNND_ASSIGN_OR_RETURN(cpu_nodes_[step.node],
                             CpuNode::Make(file_, step.node));
    }
  }
  return absl::OkStatus();
}

absl::Status RknpuModel::PlaceConstants(Backend& backend) {
  RKNND_ASSIGN_OR_RETURN(constants_,
                         backend.Allocate(placement_.constant_bytes));
  FillMemory(file_, placement_, Home::kConstants, constants_->bytes());
  return absl::OkStatus();
}

absl::Status RknpuModel::MakeCores(uint32_t cores, Backend& backend) {
  address_words_.emplace(file_);
  size_t scratch = 0;
  for (const auto* ports : {&inputs_, &outputs_}) {
    for (const Port& port : *ports) {
      scratch = std::max(scratch, port.scratch_bytes());
    }
  }
  for (uint32_t c = 0; c < cores; ++c) {
    auto core = std::make_unique<Core>();
    RKNND_ASSIGN_OR_RETURN(core->private_memory,
                           backend.Allocate(placement_.private_bytes));
    FillMemory(file_, placement_, Home::kPrivate,
               core->private_memory->bytes());
    RKNND_ASSIGN_OR_RETURN(
        core->commands,
        backend.Allocate(file_.commands.size() * sizeof(uint64_t)));
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
    // Pages that are not used cost nothing.
    RKNND_ASSIGN_OR_RETURN(core->scratch,
                           base::ToStatusOr(base::Mapping::Anonymous(scratch)));
    cores_.push_back(std::move(core));
  }
  return absl::OkStatus();
}

void RknpuModel::Describe(const std::string& name) {
  info_.name = name;
  info_.weight_size = file_.weight_bytes;
  info_.target_platform = file_.platform;
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
  program.layers = LayersOf(file_);
  program.tensors = PlacesOf(file_);
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
