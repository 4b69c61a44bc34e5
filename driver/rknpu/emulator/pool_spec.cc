// Registers of PPU and PPU_RDMA to the description of a pooling.

#include "driver/rknpu/emulator/specs.h"

namespace rknnd::rknpu {
namespace {

constexpr uint16_t kMode = 0x6024, kKernel = 0x6034, kPadding = 0x6040,
                   kPadLow = 0x6044, kPadHigh = 0x6048, kStride = 0x607c,
                   kFormat = 0x6084;

// Sizes are stored minus 1, in 13 bits.
uint32_t Size(TaskRegisters& registers, uint16_t reg) {
  registers.Only(reg, 0x1fff);
  return registers.Bits(reg, 0, 13) + 1;
}

int64_t Step(TaskRegisters& registers, uint16_t reg) {
  if (registers.Bits(reg, 0, 4) != 0) {
    registers.Refuse(reg, "distances are whole atoms");
  }
  return registers.Value(reg);
}

}  // namespace

PoolSpec ReadPool(TaskRegisters& registers) {
  PoolSpec spec;
  registers.Only(kMode, 0x1fff0013);
  const uint32_t method = registers.Bits(kMode, 0, 2);
  if (method > 1 || registers.Bits(kMode, 4, 1) == 0) {
    registers.Refuse(kMode, "maximum and average of a map in memory are known");
  }
  spec.average = method == 0;
  spec.width = Size(registers, 0x600c);
  spec.height = Size(registers, 0x6010);
  const uint32_t channels = Size(registers, 0x6014);
  for (uint16_t offset : {0x0c, 0x10, 0x14}) {
    registers.Expect(0x7000 + offset, registers.Value(0x6000 + offset));
  }
  spec.out_width = Size(registers, 0x6018);
  spec.out_height = Size(registers, 0x601c);
  registers.Expect(0x6020, channels - 1);
  if (channels % kAtom != 0) {
    registers.Refuse(0x6014, "channels come in whole atoms");
  }
  spec.surfaces = channels / kAtom;

  registers.Only(kKernel, 0x00ff0f0f);
  spec.kernel_width = registers.Bits(kKernel, 0, 4) + 1;
  spec.kernel_height = registers.Bits(kKernel, 8, 4) + 1;
  spec.stride_x = registers.Bits(kKernel, 16, 4) + 1;
  spec.stride_y = registers.Bits(kKernel, 20, 4) + 1;
  registers.Only(kPadding, 0x7777);
  spec.pad_left = registers.Bits(kPadding, 0, 3);
  spec.pad_top = registers.Bits(kPadding, 4, 3);
  if (spec.average) {
    spec.reciprocal_width = registers.Bits(0x6038, 0, 32);
    spec.reciprocal_height = registers.Bits(0x603c, 0, 32);
    for (uint16_t reg : {0x6038, 0x603c}) registers.Only(reg, 0x1ffff);
    // 35 bits with a sign.
    const auto low = static_cast<int32_t>(registers.Value(kPadLow));
    registers.Expect(kPadHigh, low < 0 ? 7 : 0);
    if (low < -128 || low > 127) {
      registers.Refuse(kPadLow, "what stands beyond the border is an int8");
    }
    spec.pad = static_cast<int8_t>(low);
  } else {
    for (uint16_t reg : {0x6038, 0x603c}) registers.Expect(reg, 0);
    registers.Expect(kPadLow, 0);
    registers.Expect(kPadHigh, 0);
  }

  registers.Expect(0x60dc, 3);
  registers.Expect(0x7030, 1);
  spec.source = registers.Value(0x701c);
  spec.source_line = Step(registers, 0x7024);
  spec.source_surface = Step(registers, 0x7028);
  spec.target = registers.Value(0x6070);
  spec.target_line =
      int64_t{kAtom} * (spec.out_width + registers.Bits(kMode, 16, 13));
  spec.target_surface = Step(registers, kStride);
  registers.Expect(kFormat, registers.Value(kStride));
  return spec;
}

}  // namespace rknnd::rknpu
