// Layers and tensors as reports show them: in the NPU's words, types and
// layouts, whatever they are inside the software NPU.
//
// Thread: the loading thread.

#ifndef DRIVER_SOFT_PLAN_NPU_VIEW_H_
#define DRIVER_SOFT_PLAN_NPU_VIEW_H_

#include <string>

#include "driver/soft/graph/graph.h"
#include "driver/soft/plan/planner.h"

namespace rknnd::soft {

// "INT8", "FLOAT16": 8-bit numbers are signed there and floats are halves.
const char* NpuTypeName(DataType type);

// Whether the NPU leaves this to the CPU: numbers it has no arithmetic for, and
// the operators that the vendor's tables show there.
bool RunsOnCpu(const Node& node, DataType type);

// N,C1,H,W,C2 of a 4-D tensor of the NPU's types, else the shape itself.
Shape NativeShape(const Shape& shape, DataType type, const PlanOptions& soc);

std::string CommaShape(const Shape& shape);  // "1,32,112,112"

}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_PLAN_NPU_VIEW_H_
