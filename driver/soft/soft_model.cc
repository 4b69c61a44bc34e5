#include "driver/soft/soft_model.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status/status.h"
#include "driver/soft/graph/passes.h"
#include "driver/soft/import/onnx_import.h"
#include "driver/soft/import/options.h"
#include "driver/soft/kernels/operator.h"

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

}  // namespace

absl::StatusOr<std::unique_ptr<SoftModel>> SoftModel::Compile(
    std::span<const std::byte> bytes, const std::string& options,
    const std::string& name, const SocProfile& soc) {
  std::string what = absl::StrCat("model '", name, "'");
  RKNND_ASSIGN_OR_RETURN(Graph graph, ImportOnnx(bytes, name));
  RKNND_ASSIGN_OR_RETURN(ModelOptions read,
                         ReadOptions(graph.metadata, options, name));
  RKNND_RETURN_IF_ERROR(CheckTarget(read.target_platform, soc, name));
  if (absl::Status status = RunPasses(graph, OperatorTable::Get());
      !status.ok()) {
    return base::Annotate(status, what);
  }
  RKNND_RETURN_IF_ERROR(ApplyOptions(read, graph, name));
  std::unique_ptr<SoftModel> model(new SoftModel);
  model->weights_ = ModelWeights(ExpectedWeights(graph));
  absl::StatusOr<Plan> plan = MakePlan(
      graph, OperatorTable::Get(),
      {.block = ChannelBlock(), .half_block = soc.half_block}, model->weights_);
  if (!plan.ok()) return base::Annotate(plan.status(), what);
  RKNND_RETURN_IF_ERROR(model->weights_.Seal());
  model->kernels_ = std::move(plan->kernels);
  model->programs_.push_back(std::move(plan->program));
  model->info_.name = graph.name;
  model->info_.weight_size = model->weights_.size();
  model->info_.custom_string = std::move(read.custom_string);
  model->info_.target_platform = std::move(read.target_platform);
  for (const Program& program : model->programs_) {
    model->info_.programs.push_back(program.info);
  }
  return model;
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

uint64_t SoftModel::scratch_size() const {
  uint64_t size = 0;
  for (const Program& program : programs_) {
    size = std::max(size, program.scratch_size);
  }
  return size;
}

}  // namespace rknnd::soft
