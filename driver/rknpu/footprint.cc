#include "driver/rknpu/footprint.h"

#include <algorithm>
#include <initializer_list>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status/status.h"
#include "driver/rknpu/registers/registers.h"

namespace rknnd::rknpu {
namespace {

constexpr int64_t kAtom = 16;  // bytes: a pixel of a surface

constexpr uint32_t kCna = 1U << 0, kDpu = 1U << 3, kDpuReader = 1U << 4,
                   kPooling = 1U << 5;

int64_t CeilDiv(int64_t number, int64_t by) { return (number + by - 1) / by; }

// Bytes that begin at all sums of steps.
class Extent {
 public:
  // So many steps, the first one at 0.
  Extent& Steps(int64_t step, int64_t count) {
    (step < 0 ? first_ : last_) += step * (count - 1);
    return *this;
  }
  [[nodiscard]] Access Of(uint16_t address_register, bool writes,
                          int64_t bytes) const {
    return {address_register, writes, first_, last_ + bytes};
  }

 private:
  int64_t first_ = 0, last_ = 0;
};

// Reads registers and collects accesses; the first thing that is not known ends
// it, and later ones mean nothing.
class Reading {
 public:
  Reading(const RegisterValues& registers, uint32_t blocks)
      : registers_(registers), blocks_(blocks) {}

  absl::StatusOr<std::vector<Access>> Read() {
    if ((blocks_ & kPooling) != 0) {
      ReadPooling();
    } else {
      if ((blocks_ & kCna) != 0) {
        ReadFeature();
        ReadWeights();
      }
      if ((blocks_ & kDpuReader) != 0) ReadDpuReader();
      if ((blocks_ & kDpu) != 0) ReadWriter();
    }
    if (!status_.ok()) return status_;
    return std::move(accesses_);
  }

 private:
  // Bits of a register that no other bits of may be set.
  uint32_t Value(uint16_t number, uint32_t known = UINT32_MAX) {
    const RegisterValues::Value value = registers_.At(number);
    if (!value.is_there) {
      Fail(absl::InvalidArgumentError(
          absl::StrCat(NameOf(number), " is written by no task of the node")));
      return 0;
    }
    if ((value.value & ~known) != 0) Refuse(number, value.value);
    return value.value & known;
  }
  // Strides and distances: 31 bits are more than any memory has.
  int64_t Distance(uint16_t number) { return Value(number, INT32_MAX); }
  int64_t SignedDistance(uint16_t number) {
    return static_cast<int32_t>(Value(number));
  }
  int64_t OneMore(uint16_t number, uint32_t known) {
    return int64_t{Value(number, known)} + 1;
  }
  static int64_t Bits(uint32_t value, unsigned low, unsigned count) {
    return value >> low & ((1U << count) - 1);
  }

  void Fail(absl::Status status) { status_.Update(std::move(status)); }
  void Refuse(uint16_t number, uint32_t value) {
    Fail(absl::UnimplementedError(
        absl::StrCat(NameOf(number), " is 0x", absl::Hex(value),
                     ", of which it is not known what memory "
                     "is touched")));
  }
  bool IsOneOf(uint16_t number, uint32_t value,
               std::initializer_list<uint32_t> known) {
    if (std::find(known.begin(), known.end(), value) != known.end()) {
      return true;
    }
    Refuse(number, value);
    return false;
  }
  void Add(const Access& access) { accesses_.push_back(access); }

  // --- CNA
  // --------------------------------------------------------------------

  // Bytes of an input channel.
  int64_t InputSize() {
    const uint32_t control = Value(0x100c);
    const int64_t precision = Bits(control, 4, 3);
    if (precision != 0 && precision != 2) Refuse(0x100c, control);
    return precision == 2 ? 2 : 1;
  }

  void ReadFeature() {
    const uint32_t control = Value(0x100c);
    const uint32_t size = Value(0x1020, 0x07ff07ff);
    const int64_t width = size >> 16;
    const int64_t height = size & 0xffff;
    if (width == 0 || height == 0) Refuse(0x1020, size);
    const int64_t line = Value(0x107c, 0x0fffffff);
    // 28 bits with a sign.
    const auto surface = static_cast<int64_t>(
        static_cast<int32_t>(Value(0x1080, 0x0fffffff) << 4) >> 4);
    const int64_t bytes = InputSize();
    const int64_t interleaved = Bits(control, 12, 4);
    constexpr int64_t kOneChannel = 8;  // 8 to 11: 1 to 4 channels
    if (interleaved != 0) {
      if (interleaved < kOneChannel || interleaved > kOneChannel + 3) {
        Refuse(0x100c, control);
      }
      const int64_t pixel = (interleaved - kOneChannel + 1) * bytes;
      const int64_t pitch = CeilDiv(line, 16) * 16 * pixel;
      Add(Extent().Steps(pitch, height).Of(0x1070, false, width * pixel));
      return;
    }
    const int64_t surfaces = CeilDiv((Value(0x1024) & 0xffff) * bytes, kAtom);
    if (surfaces == 0) Refuse(0x1024, Value(0x1024));
    const bool in_lines = Bits(control, 29, 1) != 0;
    const int64_t line_step = in_lines ? kAtom * line : 4 * line;
    const int64_t surface_step = kAtom * (surface + (in_lines ? width : line));
    Add(Extent()
            .Steps(surface_step, surfaces)
            .Steps(line_step, height)
            .Of(0x1070, false, width * kAtom));
  }

  void ReadWeights() {
    const uint32_t control = Value(0x100c);
    const int64_t bytes = InputSize();
    const uint32_t size = Value(0x1038, 0x1f1f3fff);
    const int64_t taps = Bits(size, 24, 5) * Bits(size, 16, 5);
    const int64_t kernels = Bits(size, 0, 14);
    const int64_t channels =
        CeilDiv((Value(0x1024) & 0xffff) * bytes, kAtom) * kAtom / bytes;
    constexpr int64_t kConvolution = 0;
    constexpr int64_t kDepthwise = 3;
    const int64_t mode = Bits(control, 0, 4);
    if (mode != kConvolution && mode != kDepthwise) Refuse(0x100c, control);
    // Groups of 64 bytes; the last one may be as small as 16.
    constexpr int64_t kGroup = 64;
    int64_t row = channels * bytes;
    if (mode == kDepthwise) {
      const int64_t rest = row % kGroup;
      row += rest == 3 * kAtom ? kAtom : 0;
    }
    const int64_t rows = mode == kDepthwise ? 1 : kernels;
    const int64_t needed = std::max(taps * rows * row, Distance(0x1030));
    Add({0x1110, false, 0, needed});
  }

  // --- DPU_RDMA
  // ---------------------------------------------------------------

  // Channels that coefficients are read for: of whoever counts most.
  int64_t CoefficientChannels() {
    int64_t channels =
        std::max(OneMore(0x5014, 0x1fff), OneMore(0x4058, 0x1fff));
    if ((blocks_ & kCna) != 0) {
      channels = std::max(channels, OneMore(0x3018, 0x1fff));
    }
    return channels;
  }

  // A record for 8 channels: bias, ow, mul, as far as they are in it.
  void ReadCoefficients(uint16_t parts_register, uint16_t address_register) {
    const uint32_t parts = Value(parts_register, 0x1f);
    const int64_t record = (Bits(parts, 1, 1) != 0 ? 32 : 0) +
                           (Bits(parts, 2, 1) != 0 ? 16 : 0) +
                           (Bits(parts, 3, 1) != 0 ? 16 : 0);
    if (Bits(parts, 4, 1) != 0) Refuse(parts_register, parts);
    if (record == 0) return;
    constexpr int64_t kChannelsOfRecord = 8;
    const int64_t records = CeilDiv(CoefficientChannels(), kChannelsOfRecord);
    Add({address_register, false, 0, records * record});
  }

  struct Size {
    int64_t width, height, surfaces;
  };
  Size ReaderSize(uint32_t mode) {
    const int64_t width = OneMore(0x500c, 0x1fff);
    const int64_t height = int64_t{Value(0x5010, 0x1fff1fff) & 0x1fff} + 1;
    const int64_t channels = OneMore(0x5014, 0x1fff);
    constexpr uint32_t kHalves = 0x8000;  // int16: 8 in an atom
    const int64_t bytes = (mode & kHalves) != 0 ? 2 : 1;
    return {width, height, CeilDiv(channels * bytes, kAtom)};
  }

  void ReadDpuReader() {
    ReadCoefficients(0x501c, 0x5020);
    ReadCoefficients(0x5028, 0x502c);
    const uint32_t mode = Value(0x5044);
    if (!IsOneOf(0x5044, mode,
                 {0x7810, 0x7816, 0x7d00, 0x7801, 0xf801, 0xf821})) {
      return;
    }
    const bool is_flying = (mode & 1) != 0;
    if (is_flying) ReadFlying(mode);
    ReadOperand(mode, is_flying);
  }

  int64_t FlyingLine(int64_t width) {
    return kAtom * (width + Bits(Value(0x5048), 19, 13));
  }

  void ReadFlying(uint32_t mode) {
    const Size size = ReaderSize(mode);
    const int64_t line = FlyingLine(size.width);
    const int64_t surface =
        (size.height - 1) * line + kAtom * size.width + SignedDistance(0x504c);
    Add(Extent()
            .Steps(surface, size.surfaces)
            .Steps(line, size.height)
            .Of(0x5018, false, kAtom * size.width));
  }

  void ReadOperand(uint32_t mode, bool is_flying) {
    constexpr uint32_t kOff = 1;
    const uint32_t operand = Value(0x5034);
    if ((operand & kOff) != 0) {
      // Two addresses without an operand: nobody knows what is read.
      if (mode == 0x7d00) Refuse(0x5044, mode);
      return;
    }
    const Size size = ReaderSize(mode);
    const int64_t kind = Bits(operand, 30, 2);
    if (kind == 0) {
      Add(Extent()
              .Steps(Distance(0x5040), size.surfaces)
              .Of(0x5038, false, kAtom));
      return;
    }
    if (kind != 1) Refuse(0x5034, operand);
    const int64_t line = kAtom * (size.width + Bits(Value(0x5010), 16, 13));
    if (is_flying) {
      // Lines as they are counted here, or as those of the other source.
      for (const int64_t step : {line, FlyingLine(size.width)}) {
        Add(Extent()
                .Steps(Distance(0x5040), size.surfaces)
                .Steps(step, size.height)
                .Of(0x5038, false, kAtom * size.width));
      }
      return;
    }
    if (mode != 0x7d00) Refuse(0x5044, mode);
    // Even surfaces at the first address, odd ones at the second.
    const int64_t step =
        (size.height - 1) * line + kAtom * size.width + SignedDistance(0x506c);
    for (const uint16_t address : {0x5018, 0x5038}) {
      const int64_t surfaces =
          address == 0x5018 ? CeilDiv(size.surfaces, 2) : size.surfaces / 2;
      if (surfaces == 0) continue;
      Add(Extent()
              .Steps(step, surfaces)
              .Steps(line, size.height)
              .Of(address, false, kAtom * size.width));
    }
  }

  // --- DPU's writer
  // -----------------------------------------------------------

  int64_t OutputSize() {
    const uint32_t format = Value(0x4010);
    const int64_t precision = Bits(format, 29, 3);
    if (precision > 2) Refuse(0x4010, format);
    return precision == 0 ? 1 : 2;
  }

  void ReadWriter() {
    constexpr uint32_t kConvolution = 0x1e4;
    constexpr uint32_t kDepthwise = 0x1fc;
    constexpr uint32_t kFlying = 0x1e5;
    constexpr uint32_t kAtomTranspose = 0x400001e5;
    constexpr uint32_t kAtomsOfTranspose = 0x01fffe00;
    const uint32_t mode = Value(0x400c);
    const uint32_t size = Value(0x405c, 0x1fff1fff);
    const int64_t width = (size & 0xffff) + 1;
    const int64_t height = (size >> 16) + 1;
    const int64_t line = kAtom * (width + (Value(0x4038) & 0x1fff));
    const bool flies = (blocks_ & kCna) == 0;
    if (flies && mode == kAtomTranspose) {
      WriteAtomTranspose(line);
    } else if (flies && (mode & kAtomsOfTranspose) != 0) {
      if ((mode & ~kAtomsOfTranspose) != kFlying) Refuse(0x400c, mode);
      WriteByteTranspose(line, Bits(mode, 9, 16));
    } else if (flies && (Value(0x5048) & kUnpools) != 0) {
      if (mode != kFlying) Refuse(0x400c, mode);
      WriteUnpooled(width, height, line);
    } else if (IsOneOf(0x400c, mode, {kConvolution, kDepthwise, kFlying})) {
      WriteMap(width, height, line);
    }
  }

  static constexpr uint32_t kUnpools = 1U << 12;

  void WriteMap(int64_t width, int64_t height, int64_t line) {
    const int64_t channels = std::max(OneMore(0x4058, 0x1fff),
                                      (Value(0x403c) & 0x1fff) + int64_t{1});
    const int64_t surfaces = CeilDiv(channels * OutputSize(), kAtom);
    const int64_t group = Bits(Value(0x4050), 2, 3) + 1;
    const int64_t surface_step = Distance(0x4024);
    const int64_t group_step = Distance(0x40c0);
    // The last surface, or the last one of the last whole group.
    const int64_t groups = (surfaces - 1) / group;
    int64_t last = groups * group_step + (surfaces - 1) % group * surface_step;
    if (groups > 0) {
      last = std::max(last,
                      (groups - 1) * group_step + (group - 1) * surface_step);
    }
    Access access =
        Extent().Steps(line, height).Of(0x4020, true, kAtom * width);
    access.end += last;
    Add(access);
  }

  // Each atom of one surface becomes a window of pixels.
  void WriteUnpooled(int64_t width, int64_t height, int64_t line) {
    const Size read = ReaderSize(Value(0x5044));
    if (read.surfaces != 1) Refuse(0x5014, Value(0x5014));
    const uint32_t window = Value(0x5048);
    const int64_t columns =
        std::max(width, read.width * (Bits(window, 0, 3) + 1));
    Add(Extent()
            .Steps(Distance(0x4024), Bits(window, 3, 3) + 1)
            .Steps(line, std::max(height, read.height))
            .Of(0x4020, true, kAtom * columns));
  }

  // 16 pixels and 16 channels change places.
  void WriteByteTranspose(int64_t line, int64_t atoms) {
    Add(Extent()
            .Steps(line, 2)
            .Steps(Distance(0x4024), 8)
            .Steps(Distance(0x40c0), CeilDiv(atoms, kAtom))
            .Of(0x4020, true, kAtom));
  }

  // Pixels of a line and lines change places.
  void WriteAtomTranspose(int64_t line) {
    const Size read = ReaderSize(Value(0x5044));
    Add(Extent()
            .Steps(line, read.surfaces)
            .Steps(Distance(0x4024), read.width)
            .Of(0x4020, true, kAtom * read.height));
  }

  // --- PPU
  // --------------------------------------------------------------------

  void ReadPooling() {
    // Both blocks are told the size; they must agree.
    int64_t size[3] = {};
    for (const uint16_t i : {0, 1, 2}) {
      const auto place = static_cast<uint16_t>(i * 4);
      const uint32_t reader =
          Value(static_cast<uint16_t>(0x700c + place), 0x1fff);
      if (Value(static_cast<uint16_t>(0x600c + place), 0x1fff) != reader) {
        Refuse(static_cast<uint16_t>(0x700c + place), reader);
      }
      size[i] = int64_t{reader} + 1;
    }
    const int64_t surfaces = CeilDiv(size[2], kAtom);
    Add(Extent()
            .Steps(Distance(0x7028), surfaces)
            .Steps(Distance(0x7024), size[1])
            .Of(0x701c, false, kAtom * size[0]));
    const int64_t width = OneMore(0x6018, 0x1fff);
    const int64_t height = OneMore(0x601c, 0x1fff);
    const int64_t written = CeilDiv(OneMore(0x6020, 0x1fff), kAtom);
    const int64_t line = kAtom * (width + Bits(Value(0x6024), 16, 13));
    Add(Extent()
            .Steps(Distance(0x607c), std::max(surfaces, written))
            .Steps(line, height)
            .Of(0x6070, true, kAtom * width));
  }

  const RegisterValues& registers_;
  const uint32_t blocks_;
  std::vector<Access> accesses_;
  absl::Status status_;
};

}  // namespace

absl::StatusOr<std::vector<Access>> FootprintOf(const RegisterValues& registers,
                                                uint32_t blocks) {
  return Reading(registers, blocks).Read();
}

}  // namespace rknnd::rknpu
