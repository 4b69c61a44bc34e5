#include "driver/soft/graph/passes.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/status/status.h"
#include "driver/soft/graph/quantized.h"
#include "driver/soft/graph/tensor_scales.h"

namespace rknnd::soft {
namespace {

absl::Status TakeQuantization(Graph& graph, const OperatorTable& operators,
                              Folder& folder) {
  MoveQuantization(graph);
  RemoveDeadNodes(graph);
  // New 8-bit values get their shapes, and known ones are computed.
  RKNND_RETURN_IF_ERROR(InferAndFold(graph, operators, folder, true));
  MakeIntegerLayers(graph, operators);
  RemoveDeadNodes(graph);
  RKNND_RETURN_IF_ERROR(InferAndFold(graph, operators, folder));
  FoldGates(graph, operators);
  FindShuffles(graph);
  QuantizePorts(graph);
  return absl::OkStatus();
}

// While the nodes are those of the file: some become tables.
void NoteScales(Graph& graph) {
  const std::vector<std::optional<Quantization>> scales = TensorScales(graph);
  for (std::vector<GraphPort>* ports : {&graph.inputs, &graph.outputs}) {
    for (GraphPort& port : *ports) {
      port.stands_for = scales[static_cast<size_t>(port.value)];
    }
  }
}

// Outputs behind an operator that nobody knows are described as far as the file
// goes, as programs look at them before they register that operator.
void DescribeOpenOutputs(Graph& graph) {
  for (const GraphPort& port : graph.outputs) {
    Value& value = graph.value(port.value);
    if (value.shape.has_value()) continue;
    Shape shape = port.declared.value_or(Shape());
    for (int64_t& dim : shape) dim = std::max<int64_t>(dim, 1);
    value.shape = std::move(shape);
  }
}

}  // namespace

absl::Status RunPasses(Graph& graph, const OperatorTable& operators,
                       FoldPool* pool) {
  Folder folder(pool);
  // First what needs no shapes: a dead operator need not be a known one.
  RemoveDeadNodes(graph);
  RemoveIdentities(graph);
  TurnImages(graph);
  RKNND_RETURN_IF_ERROR(InferAndFold(graph, operators, folder, true));
  RemoveIdentities(graph);
  RKNND_RETURN_IF_ERROR(CheckOpenEnds(graph));
  NoteScales(graph);
  if (std::any_of(graph.nodes.begin(), graph.nodes.end(), [](const Node& node) {
        return IsQuantize(node) || IsDequantize(node);
      })) {
    RKNND_RETURN_IF_ERROR(TakeQuantization(graph, operators, folder));
  }
  FoldScale(graph);
  FoldPad(graph);
  FindSubgraphs(graph, operators);
  FindGelu(graph, operators);
  FuseAdd(graph, operators);
  FuseActivations(graph, operators);
  RemoveDeadNodes(graph);
  NameLayers(graph);
  JoinLayers(graph);
  DescribeOpenOutputs(graph);
  return absl::OkStatus();
}

}  // namespace rknnd::soft
