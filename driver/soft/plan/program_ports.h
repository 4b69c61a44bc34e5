// The inputs and outputs of a program, as the graph has them.
//
// Thread: the loading thread.

#ifndef DRIVER_SOFT_PLAN_PROGRAM_PORTS_H_
#define DRIVER_SOFT_PLAN_PROGRAM_PORTS_H_

#include "absl/status/status.h"
#include "driver/soft/graph/graph.h"
#include "driver/soft/plan/io_port.h"
#include "driver/soft/plan/program.h"

namespace rknnd::soft {

// Adds them, with their attributes. INVALID_ARGUMENT for an output of no known
// shape.
absl::Status MakePorts(const Graph& graph, const NativeForm& form,
                       Program& program);

}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_PLAN_PROGRAM_PORTS_H_
