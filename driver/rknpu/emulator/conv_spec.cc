// Registers of CNA and CORE to the description of a convolution.

#include "driver/rknpu/emulator/specs.h"

namespace rknnd::rknpu {
namespace {

constexpr uint16_t kMode = 0x100c, kStrides = 0x1014, kSize = 0x1020,
                   kChannels = 0x1024, kKernel = 0x1038, kConversion = 0x104c,
                   kPadding = 0x1068, kAddress = 0x1070, kLineStride = 0x107c,
                   kSurfaceStride = 0x1080, kWeights = 0x1110, kPad = 0x1184,
                   kMisc = 0x3010, kOutput0 = 0x3014, kOutput1 = 0x3018;
constexpr uint32_t kGroupLineOff = 1U << 29, kNonalign = 1U << 30,
                   kDeconvolution = 1U << 16;
// Most products of int8 whose sum 32 bits hold whatever the numbers: what the
// hardware does beyond is not known.
constexpr uint64_t kMostProducts = 131071;
// Values that a task's map may have. The hardware's own buffer is a hundred
// times smaller; what is copied here must not grow with what is attached.
constexpr uint64_t kMostValues = uint64_t{1} << 26;

// What is off in all programs that are known.
void ExpectUnused(TaskRegisters& registers) {
  for (uint16_t reg :
       {0x1060, 0x1064, 0x1074, 0x1100, 0x1104, 0x1180, 0x301c, 0x3030}) {
    registers.Expect(reg, 0);
  }
  for (uint16_t reg = 0x1140; reg <= 0x117c; reg += 4) {
    registers.Expect(reg, 0);
  }
  if (registers.Bits(kConversion, 0, 1) == 0) {
    registers.Refuse(kConversion, "the input conversion is not known");
  }
}

void ReadMode(TaskRegisters& registers, ConvSpec& spec) {
  registers.Only(kMode, 0x6001f3ff);
  const uint32_t mode = registers.Value(kMode);
  const uint32_t kind = mode & 0xf;
  const uint32_t precisions = (mode >> 4) & 0x3f;
  const uint32_t image = (mode >> 12) & 0xf;
  if (kind != 0 && kind != 3) {
    registers.Refuse(kMode, "mode 0 (convolution) and 3 (depthwise) are known");
  }
  spec.depthwise = kind == 3;
  if (precisions != 0 && precisions != 0x12) {
    registers.Refuse(kMode, "the precisions int8 and float16 are known");
  }
  spec.precision = precisions == 0 ? Precision::kInt8 : Precision::kHalf;
  if (image != 0) {
    if (image < 8 || image > 11) {
      registers.Refuse(kMode, "images of 1 to 4 channels are known");
    }
    spec.feature.interleaved = image - 7;
  }
  const bool off = (mode & kGroupLineOff) != 0;
  if ((image != 0) != ((mode & kNonalign) != 0) || (image != 0 && !off)) {
    registers.Refuse(kMode,
                     "NONALIGN_DMA is known for images, with GROUP_LINE_OFF");
  }
  const bool deconvolution = (mode & kDeconvolution) != 0;
  const bool special =
      spec.depthwise || spec.precision == Precision::kHalf || image != 0;
  if ((deconvolution && special) || (spec.depthwise && image != 0) ||
      (spec.depthwise && spec.precision == Precision::kHalf)) {
    registers.Refuse(kMode, "this combination is not known");
  }
}

void ReadStrides(TaskRegisters& registers, ConvSpec& spec) {
  registers.Only(kStrides, 0x3f3f);
  spec.stride_x = registers.Bits(kStrides, 0, 3);
  spec.stride_y = registers.Bits(kStrides, 3, 3);
  const bool deconvolution = registers.Bits(kMode, 16, 1) != 0;
  const uint32_t spread = registers.Bits(kStrides, 8, 6);
  if (deconvolution) {
    spec.spread_x = (spread & 7) + 1;
    spec.spread_y = (spread >> 3) + 1;
    if (spec.stride_x != 1 || spec.stride_y != 1) {
      registers.Refuse(kStrides, "a deconvolution has strides of 1");
    }
  } else if (spread != 0) {
    registers.Refuse(kStrides, "deconvolution strides without DECONV");
  }
  if (spec.stride_x == 0 || spec.stride_y == 0) {
    const FeatureSpec& feature = spec.feature;
    if (registers.Value(kStrides) != 0 || feature.width != 1 ||
        feature.height != 1 || spec.taps() != 1 || spec.pad_left != 0 ||
        spec.pad_top != 0) {
      registers.Refuse(kStrides,
                       "a stride of 0 is known for one input pixel, both ways");
    }
  }
}

void ReadFeature(TaskRegisters& registers, ConvSpec& spec) {
  FeatureSpec& feature = spec.feature;
  registers.Only(kSize, 0x07ff07ff);
  feature.width = registers.Bits(kSize, 16, 11);
  feature.height = registers.Bits(kSize, 0, 11);
  if (feature.width == 0 || feature.height == 0) {
    registers.Refuse(kSize, "a map has at least one pixel");
  }
  registers.Only(kChannels, 0x3fffffff);
  feature.channels = registers.Bits(kChannels, 0, 16);
  const uint32_t per_atom = ChannelsPerAtom(spec.precision);
  if (feature.channels == 0 || feature.channels % per_atom != 0 ||
      (feature.interleaved != 0 && feature.channels != per_atom)) {
    registers.Refuse(kChannels, "channels come in whole atoms, images in one");
  }
  if (uint64_t{feature.width} * feature.height * feature.channels >
      kMostValues) {
    registers.Refuse(kSize, "no task reads a map as large as that");
  }
  feature.base = registers.Value(kAddress);
  registers.Only(kLineStride, 0x0fffffff);
  registers.Only(kSurfaceStride, 0x0fffffff);
  const int64_t line = registers.Bits(kLineStride, 0, 28);
  const int64_t surface = registers.SignedBits(kSurfaceStride, 0, 28);
  if (feature.interleaved != 0) {
    feature.line_step =
        (line + 15) / 16 * 16 * feature.interleaved * BytesOf(spec.precision);
  } else if (registers.Bits(kMode, 29, 1) != 0) {
    feature.line_step = line * kAtom;
    feature.surface_step = (surface + feature.width) * kAtom;
  } else {
    feature.line_step = line * 4;
    feature.surface_step = (surface + line) * kAtom;
  }
}

void ReadKernel(TaskRegisters& registers, ConvSpec& spec) {
  registers.Only(kKernel, 0x1f1f3fff);
  spec.kernel_width = registers.Bits(kKernel, 24, 5);
  spec.kernel_height = registers.Bits(kKernel, 16, 5);
  spec.kernels = registers.Bits(kKernel, 0, 14);
  if (spec.taps() == 0 || spec.kernels == 0) {
    registers.Refuse(kKernel, "a kernel has at least one weight");
  }
  if (spec.depthwise) {
    if (spec.kernels != 1) {
      registers.Refuse(kKernel, "a depthwise convolution has 1 here");
    }
    spec.kernels = spec.feature.channels;
  } else if (uint64_t{spec.taps()} * spec.feature.channels > kMostProducts &&
             spec.precision == Precision::kInt8) {
    registers.Refuse(kKernel, "sums that 32 bits may not hold are not known");
  }
  spec.weights = registers.Value(kWeights);
  registers.Only(kPadding, 0xff);
  spec.pad_left = registers.Bits(kPadding, 4, 4);
  spec.pad_top = registers.Bits(kPadding, 0, 4);
  spec.pad = registers.Value(kPad);
  if (spec.precision == Precision::kHalf && spec.pad != 0) {
    registers.Refuse(kPad, "float16 maps are padded with 0");
  }
}

void ReadOutput(TaskRegisters& registers, ConvSpec& spec) {
  const uint32_t misc = registers.Value(kMisc);
  if (spec.precision == Precision::kHalf) {
    registers.Expect(kMisc, 0x200);
  } else if (spec.depthwise) {
    registers.OneOf(kMisc, {2, 3});
  } else {
    registers.OneOf(kMisc, {0, 1});
  }
  spec.window_sums = (misc & 1) != 0;
  spec.width = registers.Bits(kOutput0, 0, 16) + 1;
  spec.height = registers.Bits(kOutput0, 16, 16) + 1;
  registers.Only(kOutput1, 0xffff);
  spec.channels = registers.Bits(kOutput1, 0, 16) + 1;
  if (spec.channels % kAtom != 0) {
    registers.Refuse(kOutput1, "outputs come in whole atoms");
  }
  // Of a depthwise convolution a group of 64 may end beyond the input.
  const uint32_t most =
      spec.depthwise ? (spec.channels + 63) / 64 * 64 : spec.channels;
  if (spec.kernels > most) {
    registers.Refuse(kOutput1, "there are more kernels than outputs");
  }
}

}  // namespace

ConvSpec ReadConv(TaskRegisters& registers) {
  ConvSpec spec;
  ExpectUnused(registers);
  ReadMode(registers, spec);
  ReadFeature(registers, spec);
  ReadKernel(registers, spec);
  ReadStrides(registers, spec);
  ReadOutput(registers, spec);
  return spec;
}

}  // namespace rknnd::rknpu
