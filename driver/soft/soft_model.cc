#include "driver/soft/soft_model.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status/status.h"
#include "driver/soft/graph/passes.h"
#include "driver/soft/import/onnx_import.h"
#include "driver/soft/import/options.h"
#include "driver/soft/import/shapes.h"
#include "driver/soft/kernels/operator.h"
#include "driver/soft/plan/sram_plan.h"
#include "driver/soft/timing/program_costs.h"

namespace rknnd::soft {
namespace {

// A guess at the weight memory: what the file brought, and room for packing.
// What turns out to be too much is given back.
uint64_t ExpectedWeights(const Graph& graph) {
  uint64_t bytes = 0;
  for (const Value& value : graph.values) {
    if (value.constant != nullptr) bytes += value.constant->data.size();
  }
  return bytes * 2 + graph.nodes.size() * 4096;
}

// "row 1 of option 'dynamic_input' (input 'x' 1x3x192x192)"
std::string RowText(const Graph& graph, const InputShapes& row, size_t r) {
  std::string shapes;
  for (size_t i = 0; i < row.size(); ++i) {
    absl::StrAppend(&shapes, i == 0 ? "" : ", ", "input '",
                    graph.inputs[i].name, "' ", ShapeText(row[i]));
  }
  return absl::StrCat("row ", r, " of option 'dynamic_input' (", shapes, ")");
}

uint32_t LargestRow(const std::vector<driver::ProgramInfo>& programs) {
  uint32_t largest = 0;
  uint64_t most = 0;
  for (uint32_t p = 0; p < programs.size(); ++p) {
    uint64_t elements = 0;
    for (const driver::TensorAttr& input : programs[p].inputs) {
      elements += input.elements;
    }
    if (elements > most) {
      most = elements;
      largest = p;
    }
  }
  return largest;
}

// From outside, so many inputs and outputs at once.
void Repeat(uint32_t slices, Program& program) {
  if (slices <= 1) return;
  driver::ProgramInfo& info = program.info;
  info.batch = slices;
  const auto repeat = [slices](std::vector<IoPort>& ports,
                               std::vector<driver::TensorAttr>& attrs,
                               std::vector<driver::TensorAttr>& natives) {
    for (size_t i = 0; i < ports.size(); ++i) {
      ports[i].Repeat(slices);
      attrs[i] = ports[i].attr();
      natives[i] = ports[i].native();
    }
  };
  repeat(program.inputs, info.inputs, info.native_inputs);
  repeat(program.outputs, info.outputs, info.native_outputs);
}

}  // namespace

absl::StatusOr<std::unique_ptr<SoftModel>> SoftModel::Compile(
    std::span<const std::byte> bytes, const std::string& options,
    const std::string& name, const SocProfile& soc) {
  std::string what = absl::StrCat("model '", name, "'");
  RKNND_ASSIGN_OR_RETURN(Graph graph, ImportOpen(bytes, name));
  RKNND_ASSIGN_OR_RETURN(ModelOptions read,
                         ReadOptions(graph.metadata, options, name));
  RKNND_RETURN_IF_ERROR(CheckTarget(read.target_platform, soc, name));
  RKNND_RETURN_IF_ERROR(CheckRows(read, graph, name));
  std::unique_ptr<SoftModel> model(new SoftModel(ExpectedWeights(graph)));
  model->info_.name = graph.name;
  const std::vector<InputShapes>& rows = read.dynamic_input;
  FoldPool pool;
  for (size_t r = 0; r < std::max<size_t>(rows.size(), 1); ++r) {
    // The constants are not copied: graphs share them.
    Graph fixed = graph;
    absl::Status status = FixInputs(rows.empty() ? nullptr : &rows[r], fixed);
    if (status.ok()) {
      status = model->AddProgram(std::move(fixed), read, soc,
                                 rows.size() > 1 ? &pool : nullptr);
    }
    if (status.ok()) continue;
    if (!rows.empty()) {
      absl::StrAppend(&what, " with ", RowText(graph, rows[r], r));
    }
    return base::Annotate(status, what);
  }
  RKNND_RETURN_IF_ERROR(model->weights_.Seal());
  model->info_.weight_size = model->weights_.size();
  model->info_.custom_string = std::move(read.custom_string);
  model->info_.target_platform = std::move(read.target_platform);
  for (const Program& program : model->programs_) {
    model->info_.programs.push_back(program.info);
  }
  model->info_.largest = LargestRow(model->info_.programs);
  return model;
}

absl::Status SoftModel::AddProgram(Graph graph, const ModelOptions& options,
                                   const SocProfile& soc, FoldPool* pool) {
  RKNND_RETURN_IF_ERROR(RunPasses(graph, OperatorTable::Get(), pool));
  RKNND_RETURN_IF_ERROR(ApplyOptions(options, graph));
  RKNND_RETURN_IF_ERROR(CheckBatch(options.rknn_batch_size, graph));
  RKNND_ASSIGN_OR_RETURN(
      Plan plan,
      MakePlan(
          graph, OperatorTable::Get(),
          {.block = ChannelBlock(),
           .half_block = soc.half_block,
           .int8_block = soc.int8_block,
           .int16_block = soc.int16_block,
           .width_alignment = soc.width_alignment,
           .sram_bytes = soc.sram_bytes,
           .cores = soc.cores,
           .programs = static_cast<uint32_t>(options.dynamic_input.size())},
          weights_));
  plan.program.times =
      CostProgram(graph, plan.layer_nodes, soc, plan.program.info);
  Repeat(options.rknn_batch_size, plan.program);
  std::move(plan.kernels.begin(), plan.kernels.end(),
            std::back_inserter(kernels_));
  programs_.push_back(std::move(plan.program));
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> SoftModel::CheckBinding(
    uint32_t program, driver::Direction direction, uint32_t index,
    const driver::TensorFormat& format) const {
  const Program& row = programs_[program];
  const IoPort& port = direction == driver::Direction::kInput
                           ? row.inputs[index]
                           : row.outputs[index];
  absl::StatusOr<ClientLayout> layout = port.Resolve(format);
  if (!layout.ok()) return layout.status();
  return layout->bytes;
}

driver::SramPlan SoftModel::PlanSram(uint32_t program, uint64_t bytes) const {
  return soft::PlanSram(programs_[program].info.tensors, bytes);
}

uint64_t SoftModel::scratch_size() const {
  uint64_t size = 0;
  for (const Program& program : programs_) {
    size = std::max(size, program.scratch_size);
  }
  return size;
}

}  // namespace rknnd::soft
