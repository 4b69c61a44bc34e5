// Counts operator new, for tests of paths that must not allocate.

#ifndef DRIVER_SOFT_TESTING_ALLOCATIONS_H_
#define DRIVER_SOFT_TESTING_ALLOCATIONS_H_

#include <cstdint>

namespace rknnd::soft::testing {

// By the calling thread since it started, those of oneDNN left out.
uint64_t Allocations();

}  // namespace rknnd::soft::testing

#endif  // DRIVER_SOFT_TESTING_ALLOCATIONS_H_
