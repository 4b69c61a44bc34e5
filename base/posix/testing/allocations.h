// Counts operator new, for tests of paths that must not allocate. Replaces it
// in the whole program, so such a test is a program of its own.

#ifndef BASE_POSIX_TESTING_ALLOCATIONS_H_
#define BASE_POSIX_TESTING_ALLOCATIONS_H_

#include <cstdint>

namespace rknnd::base::testing {

// By all threads since the program started.
uint64_t Allocations();

}  // namespace rknnd::base::testing

#endif  // BASE_POSIX_TESTING_ALLOCATIONS_H_
