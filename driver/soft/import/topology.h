// Puts nodes into an order in which every value is made before it is used.
// ONNX demands this of files; not every exporter complies.

#ifndef DRIVER_SOFT_IMPORT_TOPOLOGY_H_
#define DRIVER_SOFT_IMPORT_TOPOLOGY_H_

#include "absl/status/status.h"
#include "driver/soft/graph/graph.h"

namespace rknnd::soft {

// Keeps the order of the file where that is a right one. INVALID_ARGUMENT
// naming a node of the cycle where there is no right one.
absl::Status SortNodes(Graph& graph);

}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_IMPORT_TOPOLOGY_H_
