// What memory a task touches, from its registers: for each register that holds
// an address the bytes before and behind it that are read or written. Ranges
// are whole: what lies between the first and the last byte counts as touched.
//
// This is the executor's own reading of the registers; the emulator has another
// one, and a test lets it run with nothing but these ranges to reach. A mode
// whose accesses are not known has no footprint. Thread: any.

#ifndef DRIVER_RKNPU_FOOTPRINT_H_
#define DRIVER_RKNPU_FOOTPRINT_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "driver/rknpu/register_values.h"

namespace rknnd::rknpu {

struct Access {
  uint16_t address_register = 0;
  bool writes = false;
  int64_t first = 0, end = 0;  // bytes from the address in the register
};

// `registers` have begun the task, whose enable mask is `blocks`. UNIMPLEMENTED
// names the register whose value is not known, INVALID_ARGUMENT one that is
// missing.
absl::StatusOr<std::vector<Access>> FootprintOf(const RegisterValues& registers,
                                                uint32_t blocks);

}  // namespace rknnd::rknpu

#endif  // DRIVER_RKNPU_FOOTPRINT_H_
