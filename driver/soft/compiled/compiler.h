// Names what a compiled form depends on, so that a form that another program,
// library or CPU made is never read.
//
// Thread: any.

#ifndef DRIVER_SOFT_COMPILED_COMPILER_H_
#define DRIVER_SOFT_COMPILED_COMPILER_H_

#include <string>

#include "driver/soft/soc.h"

namespace rknnd::soft {

// "form 1, build 5f3a..., oneDNN 2.6.3 isa 0x1f7, Some CPU, caches ..., rk3588"
// "" where the linker gave the program no number: nothing is kept then, as
// nobody could tell what made it.
std::string CompilerName(const SocProfile& soc);

}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_COMPILED_COMPILER_H_
