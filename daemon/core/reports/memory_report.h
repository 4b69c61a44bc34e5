// What a model is and where its tensors lie: the text that RKNN_LOG_LEVEL=3
// prints at rknn_init, with the SRAM table of the vendor's user guide
// (5.7.3.4). Called on the loop.

#ifndef DAEMON_CORE_REPORTS_MEMORY_REPORT_H_
#define DAEMON_CORE_REPORTS_MEMORY_REPORT_H_

#include <string>

#include "driver/device.h"

namespace rknnd::core {

// The tensors of internal memory with the part of each that SRAM takes, and
// what that saves. `address` is where the plan's SRAM starts; as on the NPU,
// DRAM follows it there, with the tensors that are not in it. Inputs and
// outputs are the program's memory: no address, never in SRAM.
std::string SramTable(const driver::ModelInfo& model,
                      const driver::ProgramInfo& program,
                      const driver::SramPlan& sram, uint64_t address);

// The model and its target, then the table above: with what the context has of
// the SRAM, `offset` bytes from its start, or (null) as a forecast with all of
// it.
std::string ModelText(const driver::ModelInfo& model,
                      const driver::ProgramInfo& program,
                      const driver::SramPlan* sram, uint64_t offset,
                      const driver::DeviceInfo& device);

}  // namespace rknnd::core

#endif  // DAEMON_CORE_REPORTS_MEMORY_REPORT_H_
