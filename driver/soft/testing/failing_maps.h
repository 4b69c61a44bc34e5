// Mappings that fail when a test says so, for this process and the libraries in
// it: a shared library, found before libc's names are.

#ifndef DRIVER_SOFT_TESTING_FAILING_MAPS_H_
#define DRIVER_SOFT_TESTING_FAILING_MAPS_H_

#include <cstdint>

namespace rknnd::soft::testing {

enum class MapCall { kMmap, kMunmap, kMemfd };

// Of these calls, by any thread from now on, the `first`-th and `count - 1`
// after it fail with ENOMEM.
void FailMaps(MapCall call, uint64_t first, uint64_t count);
// None fails from now on. How many have.
uint64_t StopFailingMaps();

}  // namespace rknnd::soft::testing

#endif  // DRIVER_SOFT_TESTING_FAILING_MAPS_H_
