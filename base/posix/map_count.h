// Mappings of this process as the kernel counts and bounds them: areas of
// memory that are alike. One of which a part is protected otherwise counts as
// two or three; those that lie side by side and are alike, as one. Beyond the
// bound mmap, mprotect and munmap fail, in libraries too that never look.

#ifndef BASE_POSIX_MAP_COUNT_H_
#define BASE_POSIX_MAP_COUNT_H_

#include <cstdint>

namespace rknnd::base {

// So many there may be (vm.max_map_count); 0: not known. Thread: any.
uint64_t MostMappings();

// So many there are; 0: not known. Takes a millisecond for some thousands of
// them. Thread: any.
uint64_t CountMappings();

}  // namespace rknnd::base

#endif  // BASE_POSIX_MAP_COUNT_H_
