// The DPU's registers, for the parts that turn them into the description of a
// task (specs.h): stage_spec.cc what becomes of a value, flight_spec.cc where
// values come from that the DPU reads by itself, output_spec.cc where they go.

#ifndef DRIVER_RKNPU_EMULATOR_OUTPUT_REGISTERS_H_
#define DRIVER_RKNPU_EMULATOR_OUTPUT_REGISTERS_H_

#include <cstdint>

#include "driver/rknpu/emulator/specs.h"

namespace rknnd::rknpu {

inline constexpr uint16_t kFeatureMode = 0x400c, kFormat = 0x4010,
                          kTarget = 0x4020, kSurface = 0x4024, kNotch = 0x4038,
                          kOwCfg = 0x4050, kOwValue = 0x4054, kWriter0 = 0x4058,
                          kWriter1 = 0x405c, kEwCfg = 0x4070,
                          kEwOffset = 0x4074, kEwScale = 0x4078,
                          kOffset = 0x4080, kScale = 0x4084, kShift = 0x4088,
                          kSurfaceAdd = 0x40c0;
inline constexpr uint16_t kReaderWidth = 0x500c, kReaderHeight = 0x5010,
                          kReaderChannels = 0x5014, kSource = 0x5018,
                          kOperandCfg = 0x5034, kOperand = 0x5038,
                          kOperandSurface = 0x5040, kReaderMode = 0x5044,
                          kSourceDma = 0x5048, kSourceNotch = 0x504c,
                          kOperandNotch = 0x506c;
inline constexpr uint32_t kStageOff = 0x53, kElementWiseOff = 0x383;

// The stages of int8, after the format was looked at.
void ReadStages(TaskRegisters& registers, bool flying, OutputSpec& spec);
void ReadWriter(TaskRegisters& registers, WriterSpec& spec);
// What no known task sets.
void ExpectUnused(TaskRegisters& registers);

}  // namespace rknnd::rknpu

#endif  // DRIVER_RKNPU_EMULATOR_OUTPUT_REGISTERS_H_
