// See tile_kernels.h.

#include "driver/soft/tiles/tile_kernels.h"

#include "driver/soft/tiles/levels.h"

namespace rknnd::soft {

const ByteKernels& ByteKernelsFor(CpuLevel level) {
  switch (level) {
#if defined(__x86_64__) || defined(__i386__)
    case CpuLevel::kSse41:
    case CpuLevel::kAvx:
      return kBytesSse41;
    case CpuLevel::kAvx2:
      return kBytesAvx2;
    case CpuLevel::kAvx2Vnni:
      return kBytesAvx2Vnni;
    case CpuLevel::kAvx512:
      return kBytesAvx512;
    case CpuLevel::kAvx512Vnni:
      return kBytesAvx512Vnni;
#elif defined(__aarch64__)
    case CpuLevel::kNeon:
      return kBytesNeon;
    case CpuLevel::kNeonDot:
      return kBytesNeonDot;
#endif
    default:
      return kBytesPortable;
  }
}

// A dot product of bytes does nothing for floats.
const FloatKernels& FloatKernelsFor(CpuLevel level) {
  switch (level) {
#if defined(__x86_64__) || defined(__i386__)
    case CpuLevel::kSse41:
      return kFloatsSse41;
    case CpuLevel::kAvx:
      return kFloatsAvx;
    case CpuLevel::kAvx2:
    case CpuLevel::kAvx2Vnni:
      return kFloatsAvx2;
    case CpuLevel::kAvx512:
    case CpuLevel::kAvx512Vnni:
      return kFloatsAvx512;
#elif defined(__aarch64__)
    case CpuLevel::kNeon:
    case CpuLevel::kNeonDot:
      return kFloatsNeon;
#endif
    default:
      return kFloatsPortable;
  }
}

}  // namespace rknnd::soft
