// Registers of the DPU to the description of where results are written, and of
// what becomes of a convolution's sums.

#include "driver/rknpu/emulator/output_registers.h"

namespace rknnd::rknpu {

void ReadWriter(TaskRegisters& registers, WriterSpec& spec) {
  spec.base = registers.Value(kTarget);
  registers.Only(kWriter0, 0x1fff);
  registers.Only(kWriter1, 0x1fff1fff);
  spec.width = registers.Bits(kWriter1, 0, 13) + 1;
  spec.height = registers.Bits(kWriter1, 16, 13) + 1;
  spec.channels = registers.Bits(kWriter0, 0, 13) + 1;
  const uint32_t size = registers.Bits(kOwCfg, 2, 3);
  if (registers.Bits(kOwCfg, 5, 3) != size ||
      registers.Bits(kOwCfg, 8, 3) != size) {
    registers.Refuse(kOwCfg, "the three SIZE_E are equal");
  }
  spec.group = size + 1;
  for (uint16_t reg : {kSurface, kSurfaceAdd, kTarget}) {
    if (registers.Bits(reg, 0, 4) != 0) {
      registers.Refuse(reg, "addresses and distances are whole atoms");
    }
  }
  spec.surface_step = registers.Value(kSurface);
  spec.group_step = registers.Value(kSurfaceAdd);
  registers.Only(kNotch, 0x1fff1fff);
  const uint32_t notch = registers.Bits(kNotch, 0, 13);
  if (registers.Bits(kNotch, 16, 13) != notch) {
    registers.Refuse(kNotch, "both notches are equal");
  }
  spec.line_step = int64_t{kAtom} * (spec.width + notch);
}

void ExpectUnused(TaskRegisters& registers) {
  registers.Expect(0x4014, 0);
  registers.Expect(0x40c4, 0);
  if (registers.Uses(Block::kDpuReader)) registers.Expect(0x5064, 0);
}

OutputSpec ReadConvOutput(TaskRegisters& registers, const ConvSpec& conv) {
  OutputSpec spec;
  ExpectUnused(registers);
  spec.precision = conv.precision;
  registers.Expect(kFeatureMode, conv.depthwise ? 0x1fc : 0x1e4);
  if (registers.Uses(Block::kDpuReader)) {
    if (conv.depthwise) {
      registers.Expect(kReaderMode, 0x7816);
    } else {
      registers.OneOf(kReaderMode, {0x7810, 0x7d00});
    }
  }
  ReadWriter(registers, spec.writer);
  if (conv.precision == Precision::kHalf) {
    registers.Expect(kFormat, 0x48000002);
    registers.Expect(0x4040, kStageOff);
    registers.Expect(0x4060, kStageOff);
    registers.Expect(kEwCfg, kElementWiseOff);
    registers.Expect(kOffset, 0);
    registers.Expect(kScale, 0x10001);
    registers.Expect(kShift, 0);
    if (registers.Bits(kOwCfg, 1, 1) == 0) {
      registers.Refuse(kOwCfg, "float16 sums have no ow");
    }
  } else {
    registers.Only(kFormat, 0xfff0);
    ReadStages(registers, false, spec);
    if (spec.ow && !conv.window_sums) {
      registers.Refuse(0x3010, "the output stage needs the sums of QD_EN");
    }
  }
  const WriterSpec& writer = spec.writer;
  const bool same = writer.width == conv.width &&
                    writer.height == conv.height &&
                    writer.channels == conv.channels;
  spec.by_lines = !same;
  const bool lines = conv.depthwise && writer.width == 1 &&
                     writer.height == conv.width &&
                     conv.channels == writer.group * kAtom &&
                     writer.channels == uint64_t{conv.channels} * conv.height &&
                     spec.ew.operand == Operand::kNone;
  if (!same && !lines) {
    registers.Refuse(kWriter1, "the writer's size is not the convolution's");
  }
  return spec;
}

}  // namespace rknnd::rknpu
