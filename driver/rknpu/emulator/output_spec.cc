// Registers of DPU and DPU_RDMA to the description of what becomes of sums, or
// of atoms that the DPU reads by itself, and where it is written.

#include "driver/rknpu/emulator/specs.h"

namespace rknnd::rknpu {
namespace {

constexpr uint16_t kFeatureMode = 0x400c, kFormat = 0x4010, kTarget = 0x4020,
                   kSurface = 0x4024, kNotch = 0x4038, kOwCfg = 0x4050,
                   kOwValue = 0x4054, kWriter0 = 0x4058, kWriter1 = 0x405c,
                   kEwCfg = 0x4070, kEwOffset = 0x4074, kEwScale = 0x4078,
                   kOffset = 0x4080, kScale = 0x4084, kShift = 0x4088,
                   kSurfaceAdd = 0x40c0;
constexpr uint16_t kReaderWidth = 0x500c, kReaderHeight = 0x5010,
                   kReaderChannels = 0x5014, kSource = 0x5018,
                   kOperandCfg = 0x5034, kOperand = 0x5038,
                   kOperandSurface = 0x5040, kReaderMode = 0x5044,
                   kSourceDma = 0x5048, kSourceNotch = 0x504c,
                   kOperandNotch = 0x506c;
constexpr uint32_t kStageOff = 0x53, kElementWiseOff = 0x383;

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

// --- Writer ------------------------------------------------------------------

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

void ReadConvert(TaskRegisters& registers, OutputSpec& spec) {
  registers.Only(kScale, 0x1ffff);
  registers.Only(kShift, 0x3f);
  spec.convert.offset = static_cast<int32_t>(registers.Value(kOffset));
  spec.convert.scale = static_cast<uint16_t>(registers.Value(kScale));
  spec.convert.shift = registers.Bits(kShift, 0, 6);
}

void ExpectCopy(TaskRegisters& registers, OutputSpec& spec) {
  registers.Expect(0x4040, kStageOff);
  registers.Expect(0x4060, kStageOff);
  registers.Expect(kEwCfg, kElementWiseOff);
  registers.Expect(kOperandCfg, 1);
  registers.Expect(kOffset, 0);
  registers.Expect(kScale, 1);
  registers.Expect(kShift, 0);
  if (registers.Bits(kOwCfg, 1, 1) == 0) {
    registers.Refuse(kOwCfg, "nothing is multiplied in a copy");
  }
  spec.ow = false;
}

// The stages of int8, after the format was looked at.
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

void ExpectUnused(TaskRegisters& registers) {
  registers.Expect(0x4014, 0);
  registers.Expect(0x40c4, 0);
  if (registers.Uses(Block::kDpuReader)) registers.Expect(0x5064, 0);
}

// --- Reader ------------------------------------------------------------------

void ReadReader(TaskRegisters& registers, ReaderSpec& spec) {
  registers.Only(kReaderWidth, 0x1fff);
  registers.Only(kReaderHeight, 0x1fff1fff);
  registers.Only(kReaderChannels, 0x1fff);
  spec.width = registers.Bits(kReaderWidth, 0, 13) + 1;
  spec.height = registers.Bits(kReaderHeight, 0, 13) + 1;
  const uint32_t channels = registers.Bits(kReaderChannels, 0, 13) + 1;
  const uint32_t per_atom = spec.flight == Flight::kCompute ? kAtom : kAtom / 2;
  if (channels % per_atom != 0) {
    registers.Refuse(kReaderChannels, "channels come in whole atoms");
  }
  spec.surfaces = channels / per_atom;
  spec.base = registers.Value(kSource);
  spec.line_step =
      int64_t{kAtom} * (spec.width + registers.Bits(kSourceDma, 19, 13));
  spec.surface_step = int64_t{spec.height - 1} * spec.line_step +
                      int64_t{kAtom} * spec.width +
                      static_cast<int32_t>(registers.Value(kSourceNotch));
}

void ReadUnpool(TaskRegisters& registers, FlightSpec& spec) {
  ReaderSpec& reader = spec.reader;
  registers.Expect(kFeatureMode, 0x1e5);
  registers.Expect(kFormat, 0x04000000);
  registers.Only(kSourceDma, 0xfff81fff);
  reader.window_width = registers.Bits(kSourceDma, 0, 3) + 1;
  reader.window_height = registers.Bits(kSourceDma, 3, 3) + 1;
  if (registers.Bits(kSourceDma, 6, 6) != registers.Bits(kSourceDma, 0, 6)) {
    registers.Refuse(kSourceDma, "strides equal to the window are known");
  }
  const WriterSpec& writer = spec.output.writer;
  if (reader.surfaces != 1 || writer.group != reader.window_height ||
      writer.width != reader.width * reader.window_width ||
      writer.height != reader.height || writer.channels != kAtom) {
    registers.Refuse(
        kWriter1, "the writer's size is not the enlarged map's, one surface");
  }
}

void ReadByteTranspose(TaskRegisters& registers, FlightSpec& spec) {
  ReaderSpec& reader = spec.reader;
  registers.Expect(kFormat, 0x24000001);
  registers.Only(kFeatureMode, 0x01ffffff);
  if ((registers.Value(kFeatureMode) & 0x1ff) != 0x1e5) {
    registers.Refuse(kFeatureMode, "a transpose has 0x1e5 in its lower bits");
  }
  registers.Only(kSourceDma, 0xfff80000);
  reader.atoms = registers.Bits(kFeatureMode, 9, 16);
  const uint64_t there =
      uint64_t{reader.width} * reader.height * reader.surfaces;
  if (reader.atoms == 0 || reader.atoms % 16 != 0 || reader.atoms > there) {
    registers.Refuse(kFeatureMode,
                     "SURF_LEN is some whole groups of 16 of the pixels read");
  }
  if (spec.output.writer.group != 8) {
    registers.Refuse(kOwCfg, "a transpose writes groups of 8 surfaces");
  }
}

void ReadAtomTranspose(TaskRegisters& registers, FlightSpec& spec) {
  registers.Expect(kFeatureMode, 0x400001e5);
  registers.Expect(kFormat, 0x24000001);
  registers.Only(kSourceDma, 0xfff80000);
  if (spec.output.writer.group != 8) {
    registers.Refuse(kOwCfg, "a transpose writes groups of 8 surfaces");
  }
  if (spec.reader.width != 8) {
    registers.Refuse(kReaderWidth, "a transpose reads lines of 8 pixels");
  }
}

// A map whose places the writer has too.
void ReadCompute(TaskRegisters& registers, FlightSpec& spec) {
  registers.Expect(kFeatureMode, 0x1e5);
  registers.Only(kFormat, 0xfff0);
  registers.Only(kSourceDma, 0xfff80000);
  ReadStages(registers, true, spec.output);
  if (spec.output.ow) {
    registers.Refuse(kOwCfg,
                     "there is no sum to multiply without a convolution");
  }
  const WriterSpec& writer = spec.output.writer;
  const ReaderSpec& reader = spec.reader;
  if (writer.width != reader.width || writer.height != reader.height ||
      writer.channels != reader.surfaces * kAtom) {
    registers.Refuse(kWriter1, "reader and writer have different sizes");
  }
}

}  // namespace

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

FlightSpec ReadFlight(TaskRegisters& registers) {
  FlightSpec spec;
  ExpectUnused(registers);
  ReadWriter(registers, spec.output.writer);
  const uint32_t mode = registers.Value(kReaderMode);
  const bool turns = registers.Bits(kFeatureMode, 30, 1) != 0;
  const bool transposes = registers.Bits(kOwCfg, 27, 1) != 0;
  if (mode == 0x7801 && !turns && !transposes) {
    ReadReader(registers, spec.reader);
    ReadCompute(registers, spec);
    return spec;
  }
  ExpectCopy(registers, spec.output);
  if (mode == 0xf801 && !turns && !transposes) {
    spec.reader.flight = Flight::kUnpool;
    ReadReader(registers, spec.reader);
    if (registers.Bits(kSourceDma, 12, 1) == 0) {
      registers.Refuse(kSourceDma, "int16 is known in an unpooling only");
    }
    registers.Only(kOwCfg, 0x7ff);
    ReadUnpool(registers, spec);
  } else if (mode == 0xf821 && transposes && !turns) {
    spec.reader.flight = Flight::kByteTranspose;
    ReadReader(registers, spec.reader);
    registers.Only(kOwCfg, 0x080007ff);
    ReadByteTranspose(registers, spec);
  } else if (mode == 0xf821 && turns && !transposes) {
    spec.reader.flight = Flight::kAtomTranspose;
    ReadReader(registers, spec.reader);
    registers.Only(kOwCfg, 0x7ff);
    ReadAtomTranspose(registers, spec);
  } else {
    registers.Refuse(kReaderMode, "no such way of reading is known");
  }
  return spec;
}

}  // namespace rknnd::rknpu
