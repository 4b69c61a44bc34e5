// What a client's fd must be to become a buffer: a dma-buf, or a memfd on
// tmpfs sealed against shrinking. Anything else is refused with the reason.
// Called by daemon/core on fds it does not trust; maps nothing (the size is
// charged first).

#ifndef DRIVER_MEMORY_IMPORT_H_
#define DRIVER_MEMORY_IMPORT_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace rknnd::driver {

// The same memory has the same identity whatever fd names it.
struct MemoryIdentity {
  uint64_t device = 0, inode = 0;
  friend auto operator<=>(const MemoryIdentity&,
                          const MemoryIdentity&) = default;
};

struct ImportCheck {
  uint64_t size = 0;  // the kernel's word, not the client's
  MemoryIdentity identity;
  std::string heap;  // "memfd", or "dma-buf:" and the exporter where known
  bool is_dma_buf = false;
  // Whether it can be mapped for writing. A camera's driver exports dma-bufs
  // read-only unless asked, and a memfd may be sealed against writing: such
  // memory can be an input, not an output.
  bool writable = false;
};

// kInvalidArgument with what the fd is instead. Thread: any.
absl::StatusOr<ImportCheck> CheckImport(int fd);

}  // namespace rknnd::driver

#endif  // DRIVER_MEMORY_IMPORT_H_
