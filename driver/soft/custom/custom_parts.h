// Operators that a program computes itself cut a network into parts
// (driver/custom/custom_model.h): here a graph is cut, and described.
//
// Tensors between parts and operators are inputs and outputs of one axis, so
// that no layout is anybody's guess; a Reshape in the part gives them theirs.
//
// Thread: the loading thread.

#ifndef DRIVER_SOFT_CUSTOM_CUSTOM_PARTS_H_
#define DRIVER_SOFT_CUSTOM_CUSTOM_PARTS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/values/model_options.h"
#include "driver/soft/graph/graph.h"
#include "driver/soft/import/options.h"
#include "driver/soft/kernels/operator.h"

namespace rknnd::soft {

// Which operators of the network a program has to bring, before it says that it
// does: their names and types. Empty: none.
std::string ListCustomOperators(const Graph& graph,
                                const OperatorTable& operators);

// The network before its passes, inputs fixed. A part: `graph` becomes that,
// `options` those of its inputs, and the answer is empty. The whole: its custom
// operators are nobody's from now on, with shapes, and the answer is their
// description. Outputs of an operator that the file gives no shape have that of
// its input of the same position, or else of its first.
absl::StatusOr<std::string> CutAtCustomOperators(
    const base::CustomOperatorsOption& custom, const OperatorTable& operators,
    Graph& graph, ModelOptions& options);

}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_CUSTOM_CUSTOM_PARTS_H_
