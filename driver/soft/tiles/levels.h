// The functions of tile_kernels.h for each level of CPU, each made in a file
// that is compiled for that CPU (tiles_*.cc). Only tile_kernels.cc chooses.

#ifndef DRIVER_SOFT_TILES_LEVELS_H_
#define DRIVER_SOFT_TILES_LEVELS_H_

#include "driver/soft/tiles/tile_kernels.h"

namespace rknnd::soft {

extern const ByteKernels kBytesPortable;
extern const FloatKernels kFloatsPortable;
#if defined(__x86_64__) || defined(__i386__)
extern const ByteKernels kBytesSse41, kBytesAvx2, kBytesAvx2Vnni, kBytesAvx512,
    kBytesAvx512Vnni;
extern const FloatKernels kFloatsSse41, kFloatsAvx, kFloatsAvx2, kFloatsAvx512;
#elif defined(__aarch64__)
extern const ByteKernels kBytesNeon, kBytesNeonDot;
extern const FloatKernels kFloatsNeon;
#endif

}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_TILES_LEVELS_H_
