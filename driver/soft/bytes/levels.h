// The functions of byte_kernels.h for each level of CPU, each made in a file
// that is compiled for that CPU (bytes_*.cc). Only byte_kernels.cc chooses.

#ifndef DRIVER_SOFT_BYTES_LEVELS_H_
#define DRIVER_SOFT_BYTES_LEVELS_H_

#include "driver/soft/bytes/byte_kernels.h"

namespace rknnd::soft {

extern const ByteKernels kBytesPortable;
#if defined(__x86_64__) || defined(__i386__)
extern const ByteKernels kBytesSse41, kBytesAvx2, kBytesAvx2Vnni, kBytesAvx512,
    kBytesAvx512Vnni;
#elif defined(__aarch64__)
extern const ByteKernels kBytesNeon, kBytesNeonDot;
#endif

}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_BYTES_LEVELS_H_
