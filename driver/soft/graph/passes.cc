#include "driver/soft/graph/passes.h"

#include "base/status/status.h"

namespace rknnd::soft {

absl::Status RunPasses(Graph& graph, const OperatorTable& operators) {
  // First what needs no shapes: a dead operator need not be a known one.
  RemoveDeadNodes(graph);
  RemoveIdentities(graph);
  RKNND_RETURN_IF_ERROR(InferAndFold(graph, operators));
  RemoveIdentities(graph);
  RKNND_RETURN_IF_ERROR(FoldBatchNorm(graph));
  FuseAdd(graph, operators);
  FuseActivations(graph, operators);
  RemoveDeadNodes(graph);
  return absl::OkStatus();
}

}  // namespace rknnd::soft
