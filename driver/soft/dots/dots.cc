// See dots.h.

#include "driver/soft/dots/dots.h"

#include "driver/soft/dots/dot_levels.h"

namespace rknnd::soft {

const DotKernels& DotKernelsFor(CpuLevel level) {
  switch (level) {
#if defined(__x86_64__) || defined(__i386__)
    case CpuLevel::kSse41:
    case CpuLevel::kAvx:
      return kDotsSse41;
    case CpuLevel::kAvx2:
    case CpuLevel::kAvx2Vnni:
    case CpuLevel::kAvx512:
      return kDotsAvx2;
    case CpuLevel::kAvx512Vnni:
      return kDotsAvx512Vnni;
#elif defined(__aarch64__)
    case CpuLevel::kNeon:
      return kDotsNeon;
    case CpuLevel::kNeonDot:
      return kDotsNeonDot;
#endif
    default:
      return kDotsPortable;
  }
}

}  // namespace rknnd::soft
