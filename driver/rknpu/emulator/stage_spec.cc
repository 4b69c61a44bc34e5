// Registers of DPU and DPU_RDMA to the description of what becomes of a value
// on its way through the output stages.

#include "driver/rknpu/emulator/output_registers.h"

namespace rknnd::rknpu {
namespace {

// --- Stages ------------------------------------------------------------------

// Where a stage's registers are, and its shift for negative values.
struct StagePlace {
  uint16_t config, addend, factor, limit, memory_config, memory_base;
  unsigned negative_shift;
};
constexpr StagePlace kBs = {0x4040, 0x4044, 0x4048, 0x404c, 0x501c, 0x5020, 4};
constexpr StagePlace kBn = {0x4060, 0x4064, 0x4068, 0x406c, 0x5028, 0x502c, 10};

CoefficientSpec ReadCoefficients(TaskRegisters& registers,
                                 const StagePlace& at) {
  CoefficientSpec spec;
  if (!registers.Uses(Block::kDpuReader)) return spec;
  registers.Only(at.memory_config, 0xe);
  spec.bias = registers.Bits(at.memory_config, 1, 1) != 0;
  spec.ow = registers.Bits(at.memory_config, 2, 1) != 0;
  spec.mul = registers.Bits(at.memory_config, 3, 1) != 0;
  if (spec.record_bytes() != 0) spec.base = registers.Value(at.memory_base);
  return spec;
}

StageSpec ReadStage(TaskRegisters& registers, const StagePlace& at) {
  StageSpec spec;
  const uint32_t config = registers.Value(at.config);
  registers.Only(at.config, 0xf01d3);
  spec.memory = ReadCoefficients(registers, at);
  if ((config & 1) != 0) {
    registers.Expect(at.config, kStageOff);
    return spec;
  }
  spec.add = (config & 2) == 0;
  if (spec.add) {
    if ((config >> 16) != 2) {
      registers.Refuse(at.config, "of the ALU's algorithms 2 (add) is known");
    }
    spec.add_from_memory = (config & 0x100) != 0;
    if (spec.add_from_memory && !spec.memory.bias) {
      registers.Refuse(at.config, "the addend's reader gives none");
    }
    if (!spec.add_from_memory) {
      spec.addend = static_cast<int32_t>(registers.Value(at.addend));
    }
  }
  spec.mul = (config & 0x10) == 0;
  if (spec.mul) {
    registers.Only(at.factor, 0xffff3f01);
    spec.mul_from_memory = registers.Bits(at.factor, 0, 1) != 0;
    if (spec.mul_from_memory && !spec.memory.mul) {
      registers.Refuse(at.factor, "the multiplier's reader gives none");
    }
    spec.factor = static_cast<int16_t>(registers.SignedBits(at.factor, 16, 16));
    spec.shift = registers.Bits(at.factor, 8, 6);
    if (registers.Bits(kFormat, at.negative_shift, 6) != spec.shift) {
      registers.Refuse(kFormat,
                       "the shift of negative values equals the other's");
    }
  }
  spec.relu = (config & 0x40) == 0;
  spec.limit = (config & 0x80) != 0;
  if (spec.limit && !spec.relu) {
    registers.Refuse(at.config, "a limit is known after a ReLU");
  }
  if (spec.limit) {
    spec.most = static_cast<int32_t>(registers.Value(at.limit));
  }
  return spec;
}

void ReadOw(TaskRegisters& registers, OutputSpec& spec) {
  registers.Only(kOwCfg, 0x7ff);
  spec.ow = registers.Bits(kOwCfg, 1, 1) == 0;
  spec.ow_from_memory = registers.Bits(kOwCfg, 0, 1) != 0;
  registers.Only(kOwValue, 0xffff);
  spec.ow_value = static_cast<int16_t>(registers.SignedBits(kOwValue, 0, 16));
  if (spec.ow && spec.ow_from_memory && !spec.bs.memory.ow) {
    registers.Refuse(kOwCfg, "the operand's reader gives none");
  }
  if (spec.ow && spec.bs.idle()) {
    registers.Refuse(kOwCfg, "ow is known with the BS stage on");
  }
}

// --- Element-wise ------------------------------------------------------------

void ReadTableUse(TaskRegisters& registers, OutputSpec& spec) {
  registers.Expect(0x4108, 0x68);
  registers.Expect(0x410c, 0x50500);
  registers.Expect(0x4110, 0xffffc000);
  registers.Expect(0x4114, 0);
  registers.Expect(0x4118, 0);
  registers.Expect(0x411c, 0x4000);
  registers.Only(0x4120, 0xffff);
  registers.Only(0x4124, 0x1f);
  registers.Only(0x4128, 0xffff0000);
  registers.Only(0x412c, 0x3e0);
  spec.slopes.below = static_cast<int16_t>(registers.SignedBits(0x4120, 0, 16));
  spec.slopes.below_shift = registers.Bits(0x4124, 0, 5);
  spec.slopes.above =
      static_cast<int16_t>(registers.SignedBits(0x4128, 16, 16));
  spec.slopes.above_shift = registers.Bits(0x412c, 5, 5);
}

void ReadOperation(TaskRegisters& registers, ElementWiseSpec& spec) {
  const uint32_t config = registers.Value(kEwCfg);
  const bool multiplies = (config & 4) != 0;
  const uint32_t algorithm = (config >> 16) & 0xf;
  if (multiplies ? algorithm != 0 : algorithm > 2) {
    registers.Refuse(kEwCfg, "maximum, minimum, add and multiply are known");
  }
  constexpr Operation kOperations[] = {Operation::kMax, Operation::kMin,
                                       Operation::kAdd};
  spec.operation = multiplies      ? Operation::kMul
                   : algorithm < 3 ? kOperations[algorithm]
                                   : Operation::kAdd;
  const uint32_t mode = (config >> 28) & 3;
  if (((config >> 22) & 3) != 1 || (config >> 31) != 1 || mode > 1) {
    registers.Refuse(kEwCfg, "an operand is int8, a channel or a pixel");
  }
  spec.operand = mode == 0 ? Operand::kChannel : Operand::kPixel;
  registers.Expect(kOperandCfg, mode == 0 ? 4 : 0x40000004);
  spec.convert = (config & 0x100) == 0;
  if (spec.convert) {
    spec.offset = static_cast<int32_t>(registers.Value(kEwOffset));
    registers.Only(kEwScale, 0x3fffff);
    spec.factor = static_cast<int16_t>(registers.SignedBits(kEwScale, 0, 16));
    spec.shift = registers.Bits(kEwScale, 16, 6);
  }
}

void ReadOperandPlace(TaskRegisters& registers, bool in_pairs,
                      ElementWiseSpec& spec) {
  const uint32_t width = registers.Bits(kReaderWidth, 0, 13) + 1;
  const uint32_t height = registers.Bits(kReaderHeight, 0, 13) + 1;
  const int64_t surface = registers.Value(kOperandSurface);
  spec.line_step =
      int64_t{kAtom} * (width + registers.Bits(kReaderHeight, 16, 13));
  if (spec.operand == Operand::kPixel && in_pairs) {
    spec.base[0] = registers.Value(kSource);
    spec.base[1] = registers.Value(kOperand);
    spec.pair_step = int64_t{height - 1} * spec.line_step +
                     int64_t{width} * kAtom +
                     static_cast<int32_t>(registers.Value(kOperandNotch));
  } else {
    spec.base[0] = registers.Value(kOperand);
    spec.base[1] = spec.base[0] + static_cast<uint64_t>(surface);
    spec.pair_step = 2 * surface;
    if (spec.operand == Operand::kChannel) spec.line_step = 0;
  }
}

void ReadElementWise(TaskRegisters& registers, bool flying, OutputSpec& spec) {
  const uint32_t config = registers.Value(kEwCfg);
  registers.Only(kEwCfg, 0xb0cf03c7);
  for (uint16_t reg = 0x4090; reg <= 0x40ac; reg += 4) {
    registers.Expect(reg, 0);
  }
  registers.Expect(0x407c, 0);
  const bool reads = registers.Uses(Block::kDpuReader);
  if ((config & 1) != 0) {
    registers.Expect(kEwCfg, kElementWiseOff);
  } else {
    spec.ew.table = (config & 0x80) == 0;
    spec.ew.relu = (config & 0x200) == 0;
    if (spec.ew.table) ReadTableUse(registers, spec);
    if ((config & 0x40) != 0 && (config & 2) == 0) {
      if (!reads) registers.Refuse(kEwCfg, "nothing reads the operand");
      ReadOperation(registers, spec.ew);
    } else if (!spec.ew.table) {
      registers.Refuse(kEwCfg, "an operand without a source");
    } else {
      // Of a table alone the operand is off, or on without a source.
      registers.OneOf(kEwCfg, {0x302, 0x300, 0x102, 0x100});
    }
  }
  if (spec.ew.operand == Operand::kNone) {
    if (reads) registers.Expect(kOperandCfg, 1);
    return;
  }
  const bool in_pairs = !flying && registers.Value(kReaderMode) == 0x7d00;
  if (!flying && spec.ew.operand == Operand::kPixel && !in_pairs) {
    registers.Refuse(kReaderMode, "an operand of a convolution needs 0x7d00");
  }
  ReadOperandPlace(registers, in_pairs, spec.ew);
}

void ReadConvert(TaskRegisters& registers, OutputSpec& spec) {
  registers.Only(kScale, 0x1ffff);
  registers.Only(kShift, 0x3f);
  spec.convert.offset = static_cast<int32_t>(registers.Value(kOffset));
  spec.convert.scale = static_cast<uint16_t>(registers.Value(kScale));
  spec.convert.shift = registers.Bits(kShift, 0, 6);
}

}  // namespace

void ReadStages(TaskRegisters& registers, bool flying, OutputSpec& spec) {
  spec.bs = ReadStage(registers, kBs);
  spec.bn = ReadStage(registers, kBn);
  if (spec.bn.add && spec.bn.mul &&
      (spec.bn.add_from_memory || spec.bn.addend != 0)) {
    registers.Refuse(kBn.config,
                     "the order of its two operations is not known");
  }
  ReadOw(registers, spec);
  ReadElementWise(registers, flying, spec);
  ReadConvert(registers, spec);
  if (registers.Bits(kScale, 16, 1) != 0) {
    registers.Refuse(kScale, "int8 results do not become float16");
  }
}

}  // namespace rknnd::rknpu
