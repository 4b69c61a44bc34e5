// See kernels.h.

#include "driver/rknpu/emulator/kernels/kernels.h"

#include "driver/rknpu/emulator/kernels/levels.h"

namespace rknnd::rknpu::fast {

const Kernels& KernelsFor(soft::CpuLevel level) {
  switch (level) {
#if defined(__x86_64__) || defined(__i386__)
    case soft::CpuLevel::kSse41:
    case soft::CpuLevel::kAvx:
      return kSse41Kernels;
    case soft::CpuLevel::kAvx2:
      return kAvx2Kernels;
    case soft::CpuLevel::kAvx2Vnni:
      return kAvx2VnniKernels;
    case soft::CpuLevel::kAvx512:
      return kAvx512Kernels;
    case soft::CpuLevel::kAvx512Vnni:
      return kAvx512VnniKernels;
#elif defined(__aarch64__)
    case soft::CpuLevel::kNeon:
      return kNeonKernels;
    case soft::CpuLevel::kNeonDot:
      return kNeonDotKernels;
#endif
    default:
      return kPortableKernels;
  }
}

}  // namespace rknnd::rknpu::fast
