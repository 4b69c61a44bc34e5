// A model's graph -> Graph, with the bodies of its nodes (If, Loop, Scan) as
// graphs of their own and calls of the model's functions written out. Files are
// not trusted; errors name node or value, the caller adds the model.
//
// Thread: the loading thread.

#ifndef DRIVER_SOFT_IMPORT_GRAPH_IMPORT_H_
#define DRIVER_SOFT_IMPORT_GRAPH_IMPORT_H_

#include "absl/status/statusor.h"
#include "driver/soft/graph/graph.h"
#include "driver/soft/import/weight_owner.h"

namespace rknnd::soft {

absl::StatusOr<Graph> ImportGraph(const onnx::ModelProto& model,
                                  const WeightOwner& owner);

}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_IMPORT_GRAPH_IMPORT_H_
