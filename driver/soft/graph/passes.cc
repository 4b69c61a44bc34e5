#include "driver/soft/graph/passes.h"

#include <algorithm>

#include "base/status/status.h"
#include "driver/soft/graph/quantized.h"

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
  return absl::OkStatus();
}

}  // namespace rknnd::soft
