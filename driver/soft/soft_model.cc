#include "driver/soft/soft_model.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status/status.h"
#include "driver/memory/cache_sync.h"
#include "driver/memory/fault_guard.h"
#include "driver/soft/accuracy/layers_apart.h"
#include "driver/soft/attached_memory.h"
#include "driver/soft/compiled/compiled_form.h"
#include "driver/soft/custom/custom_parts.h"
#include "driver/soft/graph/passes.h"
#include "driver/soft/import/onnx_import.h"
#include "driver/soft/import/options.h"
#include "driver/soft/import/shapes.h"
#include "driver/soft/kernels/operator.h"
#include "driver/soft/plan/frame_transfer.h"
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

struct SoftModel::Recipe {
  CompiledForm form;
  std::vector<PlanRecorder> recorders;  // of the rows
  // Comparisons are for once, and their graphs say more than the form keeps.
  bool keeps = true;
};

absl::StatusOr<std::unique_ptr<SoftModel>> SoftModel::Compile(
    const driver::LoadRequest& request, const SocProfile& soc,
    std::shared_ptr<WeightPool> pool) {
  const std::string& name = request.name;
  std::string what = absl::StrCat("model '", name, "'");
  RKNND_ASSIGN_OR_RETURN(Graph graph,
                         ImportOpen(request.bytes, name, request.weights_of));
  RKNND_ASSIGN_OR_RETURN(ModelOptions read,
                         ReadOptions(graph.metadata, request.options, name));
  RKNND_RETURN_IF_ERROR(CheckTarget(read.target_platform, soc, name));
  RKNND_RETURN_IF_ERROR(CheckRows(read, graph, name));
  std::string custom_operators;
  if (read.custom) {
    if (const absl::Status fixed = FixInputs(nullptr, graph); !fixed.ok()) {
      return base::Annotate(fixed, what);
    }
    absl::StatusOr<std::string> cut =
        CutAtCustomOperators(*read.custom, OperatorTable::Get(), graph, read);
    if (!cut.ok()) return base::Annotate(cut.status(), what);
    custom_operators = *std::move(cut);
  } else {
    custom_operators = ListCustomOperators(graph, OperatorTable::Get());
  }
  std::unique_ptr<SoftModel> model(new SoftModel(
      ExpectedWeights(graph), std::move(pool), request.share_weights));
  model->info_.name = graph.name;
  model->recipe_ = std::make_unique<Recipe>();
  const std::vector<InputShapes>& rows = read.dynamic_input;
  FoldPool folded;
  for (size_t r = 0; r < std::max<size_t>(rows.size(), 1); ++r) {
    // The constants are not copied: graphs share them.
    Graph fixed = graph;
    absl::Status status = FixInputs(rows.empty() ? nullptr : &rows[r], fixed);
    if (status.ok()) {
      status = model->AddProgram(std::move(fixed), read, soc,
                                 rows.size() > 1 ? &folded : nullptr);
    }
    if (status.ok()) continue;
    if (!rows.empty()) {
      absl::StrAppend(&what, " with ", RowText(graph, rows[r], r));
    }
    return base::Annotate(status, what);
  }
  RKNND_RETURN_IF_ERROR(model->weights_.Seal());
  model->info_.weight_size = model->weights_.size();
  model->info_.custom_operators = std::move(custom_operators);
  model->info_.custom_string = std::move(read.custom_string);
  model->info_.target_platform = std::move(read.target_platform);
  model->recipe_->keeps = read.accuracy == Accuracy::kOff;
  model->recipe_->form.batch = read.rknn_batch_size;
  model->recipe_->form.listed_rows = static_cast<uint32_t>(rows.size());
  model->Complete();
  return model;
}

void SoftModel::Complete() {
  for (const Program& program : programs_) {
    info_.programs.push_back(program.info);
  }
  info_.largest = LargestRow(info_.programs);
}

absl::Status SoftModel::AddProgram(Graph graph, const ModelOptions& options,
                                   const SocProfile& soc, FoldPool* pool) {
  if (options.accuracy == Accuracy::kOff) {
    RKNND_RETURN_IF_ERROR(RunPasses(graph, OperatorTable::Get(), pool));
  } else {
    RKNND_RETURN_IF_ERROR(
        SetLayersApart(options.accuracy, graph, OperatorTable::Get(), pool));
  }
  RKNND_RETURN_IF_ERROR(ApplyOptions(options, graph));
  RKNND_RETURN_IF_ERROR(CheckBatch(options.rknn_batch_size, graph));
  PlanRecorder recorder(&weights_);
  RKNND_RETURN_IF_ERROR(AddPlan(
      graph, options.rknn_batch_size,
      static_cast<uint32_t>(options.dynamic_input.size()), soc, recorder));
  recipe_->form.rows.push_back(
      {std::make_unique<const Graph>(std::move(graph)), {}});
  recipe_->recorders.push_back(std::move(recorder));
  return absl::OkStatus();
}

absl::Status SoftModel::AddPlan(const Graph& graph, uint32_t batch,
                                uint32_t listed_rows, const SocProfile& soc,
                                PlanParts& parts) {
  RKNND_ASSIGN_OR_RETURN(Plan plan,
                         MakePlan(graph, OperatorTable::Get(),
                                  {.block = ChannelBlock(),
                                   .half_block = soc.half_block,
                                   .int8_block = soc.int8_block,
                                   .int16_block = soc.int16_block,
                                   .width_alignment = soc.width_alignment,
                                   .sram_bytes = soc.sram_bytes,
                                   .cores = soc.cores,
                                   .programs = listed_rows},
                                  weights_, parts));
  plan.program.times =
      CostProgram(graph, plan.layer_nodes, soc, plan.program.info);
  Repeat(batch, plan.program);
  std::move(plan.kernels.begin(), plan.kernels.end(),
            std::back_inserter(kernels_));
  programs_.push_back(std::move(plan.program));
  return absl::OkStatus();
}

SoftModel::SoftModel(uint64_t expected_weights,
                     std::shared_ptr<WeightPool> pool, bool shares)
    : weights_(expected_weights, std::move(pool), shares) {}

SoftModel::~SoftModel() = default;

absl::StatusOr<std::unique_ptr<SoftModel>> SoftModel::Restore(
    const driver::LoadRequest& request, const SocProfile& soc,
    std::shared_ptr<WeightPool> pool) {
  RKNND_ASSIGN_OR_RETURN(
      CompiledForm form,
      CompiledForm::Read(request.compiled, OperatorTable::Get()));
  const uint64_t needed = form.WeightBytes();
  std::unique_ptr<SoftModel> model(
      new SoftModel(needed, std::move(pool), request.share_weights));
  model->restored_ = std::make_unique<RestoredKernels>(
      std::move(form.pieces), request.compiled_keeper, &model->weights_);
  model->info_.name = form.rows.front().graph->name;
  for (CompiledForm::Row& row : form.rows) {
    const Graph& graph = *row.graph;
    RKNND_RETURN_IF_ERROR(CheckBatch(form.batch, graph));
    const std::unique_ptr<PlanParts> parts =
        model->restored_->PartsOf(std::move(row.graph), std::move(row.plan));
    RKNND_RETURN_IF_ERROR(
        model->AddPlan(graph, form.batch, form.listed_rows, soc, *parts));
  }
  model->restored_->Serve(model->programs_);
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  model->info_.weight_size = (needed + page - 1) / page * page;
  model->info_.custom_string = std::move(form.custom_string);
  model->info_.target_platform = std::move(form.target_platform);
  model->Complete();
  return model;
}

absl::Status SoftModel::WriteCompiled(
    absl::FunctionRef<absl::Status(std::span<const std::byte>)> write) {
  // One that stops at a foreign operator is compiled in no time.
  const bool stops =
      std::any_of(programs_.begin(), programs_.end(),
                  [](const Program& program) { return !program.stop.ok(); });
  if (recipe_ == nullptr || stops || !recipe_->keeps) {
    return Model::WriteCompiled(write);
  }
  CompiledForm& form = recipe_->form;
  form.custom_string = info_.custom_string;
  form.target_platform = info_.target_platform;
  for (size_t r = 0; r < form.rows.size(); ++r) {
    form.rows[r].plan = recipe_->recorders[r].Take();
  }
  for (const std::string_view piece : weights_.pieces()) {
    form.pieces.push_back(std::as_bytes(std::span(piece)));
  }
  return form.Write(write);
}

absl::Status SoftModel::CopyWeights(driver::Memory& to, uint64_t offset) const {
  RKNND_RETURN_IF_ERROR(Ready());
  auto& memory = static_cast<AttachedMemory&>(to);
  const std::span<std::byte> room = memory.From(offset);
  const auto size = static_cast<size_t>(info_.weight_size);
  if (room.size() < size || !memory.writable()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "memory for a copy of the weights has ", room.size(), " bytes",
        memory.writable() ? ", " : " to read, ", size, " to write are needed"));
  }
  if (memory.dma_buf() >= 0) {
    RKNND_RETURN_IF_ERROR(
        driver::BeginCpuAccess(memory.dma_buf(), driver::CpuAccess::kWrite));
  }
  const std::span<std::byte> copy = room.first(size);
  const bool there = driver::Guarded(copy, [&] {
    size_t at = 0;
    for (const std::string_view piece : weights_.pieces()) {
      // Never the case; but this is somebody else's memory.
      if (piece.size() > size - at) return;
      if (!piece.empty()) {
        std::memcpy(copy.data() + at, piece.data(), piece.size());
      }
      const size_t next = std::min(
          size, (at + piece.size() + ModelWeights::kAlignment - 1) /
                    ModelWeights::kAlignment * ModelWeights::kAlignment);
      std::memset(copy.data() + at + piece.size(), 0, next - at - piece.size());
      at = next;
    }
    std::memset(copy.data() + at, 0, size - at);
  });
  if (memory.dma_buf() >= 0) {
    RKNND_RETURN_IF_ERROR(
        driver::EndCpuAccess(memory.dma_buf(), driver::CpuAccess::kWrite));
  }
  if (there) return absl::OkStatus();
  return absl::DataLossError(
      "the weight memory went away while it was filled: its file was truncated "
      "or punched");
}

absl::Status SoftModel::Finish() {
  recipe_ = nullptr;
  return restored_ == nullptr ? absl::OkStatus() : restored_->MakeAll();
}

// Before they are taken it is as if this model had to pay for all of them.
uint64_t SoftModel::held_weights() const {
  return restored_ != nullptr && !restored_->has_weights() ? info_.weight_size
                                                           : weights_.held();
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

absl::StatusOr<driver::FrameSizes> SoftModel::CheckFrame(
    uint32_t program, uint32_t index, const driver::FrameFormat& frame) const {
  return soft::CheckFrame(programs_[program].inputs[index], frame);
}

driver::SramPlan SoftModel::PlanSram(uint32_t program, uint64_t bytes) const {
  const driver::ProgramInfo& info = programs_[program].info;
  driver::SramPlan plan = SearchSram(info.tensors, bytes);
  // What loading found for all of the SRAM may do with less of it.
  const bool is_better =
      bytes >= info.sram.used && info.sram.saved > plan.saved;
  return is_better ? info.sram : plan;
}

uint64_t SoftModel::scratch_size() const {
  uint64_t size = 0;
  for (const Program& program : programs_) {
    size = std::max(size, program.scratch_size);
  }
  return size;
}

}  // namespace rknnd::soft
