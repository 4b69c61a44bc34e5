// Numbers of the output stages that lie in memory, eight channels a record, and
// where results go. Layout only: no arithmetic that the engines should do each
// for itself.

#ifndef DRIVER_RKNPU_EMULATOR_COEFFICIENTS_H_
#define DRIVER_RKNPU_EMULATOR_COEFFICIENTS_H_

#include <cstdint>
#include <vector>

#include "driver/rknpu/emulator/access.h"
#include "driver/rknpu/emulator/specs.h"

namespace rknnd::rknpu {

// A stage's numbers of all channels, read before the first value comes.
struct Coefficients {
  std::vector<int32_t> bias;
  std::vector<int16_t> ow, mul;
};
// What `spec` has not stays empty.
Coefficients ReadCoefficients(const CoefficientSpec& spec, uint32_t channels,
                              uint16_t reg, Access& access);

// Where the writer puts an atom of surface `s`, line `y` and pixel `x` of what
// comes to it.
uint64_t PlaceOf(const OutputSpec& spec, uint32_t s, uint32_t y, uint32_t x);

}  // namespace rknnd::rknpu

#endif  // DRIVER_RKNPU_EMULATOR_COEFFICIENTS_H_
