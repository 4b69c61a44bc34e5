// The sets of kernels.h, each made in a file that is compiled for its CPU. Only
// kernels.cc chooses.

#ifndef DRIVER_RKNPU_EMULATOR_KERNELS_LEVELS_H_
#define DRIVER_RKNPU_EMULATOR_KERNELS_LEVELS_H_

#include "driver/rknpu/emulator/kernels/kernels.h"

namespace rknnd::rknpu::fast {

extern const Kernels kPortableKernels;
#if defined(__x86_64__) || defined(__i386__)
extern const Kernels kSse41Kernels, kAvx2Kernels, kAvx2VnniKernels,
    kAvx512Kernels, kAvx512VnniKernels;
#elif defined(__aarch64__)
extern const Kernels kNeonKernels, kNeonDotKernels;
#endif

}  // namespace rknnd::rknpu::fast

#endif  // DRIVER_RKNPU_EMULATOR_KERNELS_LEVELS_H_
