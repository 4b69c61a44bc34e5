// Sealed anonymous files: what models, rings, big replies and, where the
// kernel has no dma-buf, tensors travel in.

#ifndef BASE_POSIX_MEMFD_H_
#define BASE_POSIX_MEMFD_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/posix/unique_fd.h"
#include "base/values/expected.h"

namespace rknnd::base {

enum class Seals {
  kFixedSize,  // neither shrinks nor grows: rings, buffers
  kImmutable,  // and is never written again: models, replies
};

// A memfd of `size` zero bytes on tmpfs (never hugetlb), named for /proc,
// sealed to its size, and against further sealing.
Expected<UniqueFd> MakeMemfd(const char* name, uint64_t size);

// A memfd that holds `bytes`, sealed kImmutable.
Expected<UniqueFd> MakeImmutableMemfd(const char* name,
                                      std::span<const std::byte> bytes);

// Gives a new memfd all of its memory at once. A fault for each page later
// costs a third more.
Expected<void> FillMemfd(int fd, uint64_t size);

// A memfd that is written piece by piece, with no seal yet.
Expected<UniqueFd> MakeGrowingMemfd(const char* name);
// Behind the bytes it has.
Expected<void> AppendToMemfd(int fd, std::span<const std::byte> bytes);
// From now on it is kImmutable.
Expected<void> SealMemfd(int fd);

// Whether `fd` is a memfd on tmpfs with at least these seals. False for every
// other kind of file.
bool HasSeals(int fd, Seals seals);

}  // namespace rknnd::base

#endif  // BASE_POSIX_MEMFD_H_
