// How much work a task may ask for, before an engine begins it: no more values
// than the job's memory has bytes, although steps of 0 would let a few bytes be
// read for ever. Both engines refuse the same tasks.

#ifndef DRIVER_RKNPU_EMULATOR_WORK_BOUNDS_H_
#define DRIVER_RKNPU_EMULATOR_WORK_BOUNDS_H_

#include "driver/rknpu/emulator/access.h"
#include "driver/rknpu/emulator/specs.h"

namespace rknnd::rknpu {

// False: it was refused, by the name of the register.
bool IsBounded(const ConvSpec& conv, Access& access);
bool IsBounded(const FlightSpec& flight, Access& access);
bool IsBounded(const PoolSpec& pool, Access& access);

}  // namespace rknnd::rknpu

#endif  // DRIVER_RKNPU_EMULATOR_WORK_BOUNDS_H_
