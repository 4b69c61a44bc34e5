// Registers of DPU and DPU_RDMA to the description of a task that reads a map
// by itself, without a convolution.

#include "driver/rknpu/emulator/output_registers.h"

namespace rknnd::rknpu {
namespace {

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
