// The functions of dots.h for each level of CPU, each made in a file that is
// compiled for that CPU (dots_*.cc). Only dots.cc chooses.

#ifndef DRIVER_SOFT_DOTS_DOT_LEVELS_H_
#define DRIVER_SOFT_DOTS_DOT_LEVELS_H_

#include "driver/soft/dots/dots.h"

namespace rknnd::soft {

extern const DotKernels kDotsPortable;
#if defined(__x86_64__) || defined(__i386__)
extern const DotKernels kDotsSse41, kDotsAvx2, kDotsAvx512Vnni;
#elif defined(__aarch64__)
extern const DotKernels kDotsNeon, kDotsNeonDot;
#endif

}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_DOTS_DOT_LEVELS_H_
