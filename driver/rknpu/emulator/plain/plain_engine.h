// One task as a manual of the NPU would tell it: pixel by pixel and value by
// value, with every address looked up as it is used. What the fast engine does
// must equal this to the byte.
//
// Each function leaves its error in `access`. Thread: any.

#ifndef DRIVER_RKNPU_EMULATOR_PLAIN_PLAIN_ENGINE_H_
#define DRIVER_RKNPU_EMULATOR_PLAIN_PLAIN_ENGINE_H_

#include "driver/rknpu/emulator/access.h"
#include "driver/rknpu/emulator/core_state.h"
#include "driver/rknpu/emulator/specs.h"

namespace rknnd::rknpu {

void RunPlainConv(const ConvSpec& conv, const OutputSpec& output,
                  const Tables& tables, Access& access);
void RunPlainFlight(const FlightSpec& flight, const Tables& tables,
                    Access& access);
void RunPlainPool(const PoolSpec& pool, Access& access);

}  // namespace rknnd::rknpu

#endif  // DRIVER_RKNPU_EMULATOR_PLAIN_PLAIN_ENGINE_H_
