// Tasks of the NPU made by tests, register by register: complete ones as
// compilers write them, which a test then changes where it wants to, and whole
// programs with chains, in memory of their own.

#ifndef DRIVER_RKNPU_EMULATOR_TESTING_TASK_BUILDER_H_
#define DRIVER_RKNPU_EMULATOR_TESTING_TASK_BUILDER_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "driver/rknpu/emulator/emulator.h"

namespace rknnd::rknpu::testing {

using RegisterValues = std::map<uint16_t, uint32_t>;

inline constexpr uint32_t kConvMask = 0x1d, kFlightMask = 0x18,
                          kPoolMask = 0x60;

// Everything but the output stages, which pass values through (BS with a bias,
// ow and multiplier from memory, as all convolutions have them).
struct ConvShape {
  uint32_t width = 1, height = 1, channels = 16;  // input; whole atoms
  uint32_t interleaved = 0;
  bool grouped_lines = true;  // else GROUP_LINE_OFF
  uint32_t kernels = 32, kernel_width = 1, kernel_height = 1;
  bool depthwise = false;
  uint32_t stride_x = 1, stride_y = 1, spread_x = 1, spread_y = 1;
  uint32_t pad_left = 0, pad_top = 0, pad = 0;
  uint32_t out_width = 1, out_height = 1, out_channels = 32;
  uint32_t input = 0, weights = 0, coefficients = 0, output = 0;
};
RegisterValues ConvTask(const ConvShape& shape);
// A flight that copies: all stages off.
RegisterValues FlightTask(uint32_t width, uint32_t height, uint32_t channels,
                          uint32_t input, uint32_t output);
// A maximum of single pixels.
RegisterValues PoolTask(uint32_t width, uint32_t height, uint32_t channels,
                        uint32_t input, uint32_t output);

// Tasks in the order they are added, at `address` of the NPU.
class TaskProgram {
 public:
  explicit TaskProgram(uint32_t address) : address_(address) {}

  // `extra`: commands behind the registers, in order (tables).
  void Add(uint32_t enable_mask, const RegisterValues& registers,
           uint32_t node = 1, const std::vector<uint64_t>& extra = {});
  // Chains of all tasks; attaches the commands, which live in this object.
  void Finish(Memory& memory);

  [[nodiscard]] const std::vector<Task>& tasks() const { return tasks_; }
  // After Finish().
  std::span<uint64_t> words() { return words_; }

 private:
  uint32_t address_;
  std::vector<Task> tasks_;
  std::vector<uint64_t> words_;
};

// Commands that load both tables, 513 entries each.
std::vector<uint64_t> TableCommands(std::span<const int16_t> le,
                                    std::span<const int16_t> lo);

// Registers of a stage that uses them: ends, slopes 0.
void UseTable(RegisterValues& registers);

}  // namespace rknnd::rknpu::testing

#endif  // DRIVER_RKNPU_EMULATOR_TESTING_TASK_BUILDER_H_
