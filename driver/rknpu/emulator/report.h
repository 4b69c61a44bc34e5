// What a task costs on the hardware, from its registers. An estimate from
// below: each block is taken to do one step a clock, and never to wait.

#ifndef DRIVER_RKNPU_EMULATOR_REPORT_H_
#define DRIVER_RKNPU_EMULATOR_REPORT_H_

#include "driver/rknpu/emulator/emulator.h"
#include "driver/rknpu/emulator/specs.h"

namespace rknnd::rknpu {

// Each fills macs, bytes and cycles.
void CountConv(const ConvSpec& conv, const OutputSpec& output,
               TaskReport& report);
void CountFlight(const FlightSpec& flight, TaskReport& report);
void CountPool(const PoolSpec& pool, TaskReport& report);

}  // namespace rknnd::rknpu

#endif  // DRIVER_RKNPU_EMULATOR_REPORT_H_
