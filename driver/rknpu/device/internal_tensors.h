// What reports say of a program's internal memory: the tensors that lie in it,
// and which of them SRAM holds. Thread: any; pure functions.

#ifndef DRIVER_RKNPU_DEVICE_INTERNAL_TENSORS_H_
#define DRIVER_RKNPU_DEVICE_INTERNAL_TENSORS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "driver/model_info.h"
#include "driver/rknpu/file/program_file.h"

namespace rknnd::rknpu {

std::string ShapeText(const std::vector<uint32_t>& shape);
// As the vendor's tables name them; empty for what is no element.
const char* ReportedType(ElementType type);

// By the first node that has them.
std::vector<driver::TensorPlace> InternalTensors(const ProgramFile& file);

// What so many bytes of SRAM hold. The compiler has given each tensor its place
// in internal memory, and the kernel's driver backs the first bytes of a buffer
// with SRAM: so those tensors are in it that begin there.
driver::SramPlan PlanSramOf(const driver::ProgramInfo& program, uint64_t bytes);

}  // namespace rknnd::rknpu

#endif  // DRIVER_RKNPU_DEVICE_INTERNAL_TENSORS_H_
