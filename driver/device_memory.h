// Memory that a device can reach: what it is given, what it makes of it, and
// whose writes the other side sees.

#ifndef DRIVER_DEVICE_MEMORY_H_
#define DRIVER_DEVICE_MEMORY_H_

#include <cstdint>

#include "absl/status/status.h"

namespace rknnd::driver {

// Where memory came from, which says who may write it and by which caches.
enum class MemoryOrigin : uint8_t {
  kBrought,       // a program's fd: anybody writes it, unannounced
  kCachedHeap,    // ours: programs write it, and devices they hand it to
  kUncachedHeap,  // ours, and no CPU caches it
};

// Memory by name, so that a device may live in another process. Borrowed for
// the call; the device keeps its own reference to the memory, not to the fd.
struct MemoryRef {
  int fd = -1;
  uint64_t offset = 0;
  uint64_t size = 0;
  MemoryOrigin origin = MemoryOrigin::kBrought;
};

enum class MemoryAccess { kRead, kReadWrite };
// Whose writes the other is to see, where the CPU's cache hides them.
enum class CacheSide { kToDevice, kFromDevice, kBoth };

// DMA_BUF_IOCTL_SYNC and its like: how often it was issued for this device's
// jobs, and how often it was left out where it could matter: nothing had
// changed sides since the last one, or the program does it itself
// (RKNN_FLAG_DISABLE_FLUSH_*). Memory without caches counts nowhere.
struct CacheSyncs {
  uint64_t done = 0, skipped = 0;
};

// Memory a device can reach; detached when destroyed, which must not happen
// while a job uses it. Thread: any.
class Memory {
 public:
  virtual ~Memory() = default;
  [[nodiscard]] virtual uint64_t size() const = 0;
  // Zeroes a range that lies inside; called on arenas between jobs. Devices
  // whose memory the CPU cannot reach clear it themselves and do nothing here.
  virtual void Clear(uint64_t /*offset*/, uint64_t /*bytes*/) {}
  // The program says that it has written, or is about to read
  // (rknn_mem_sync), where the kernel has no call for that memory. Devices that
  // share the CPU's caches have nothing to do.
  virtual void Synchronize(CacheSide /*side*/) {}
  // The CPU copies a part of `from` to `offset`, with what the caches of this
  // need: an answer goes to a further reader. `from` is of the same device,
  // and no program's; both ranges lie inside. DATA_LOSS: pages of this memory
  // went away meanwhile.
  virtual absl::Status CopyFrom(const Memory& from, uint64_t from_offset,
                                uint64_t offset, uint64_t bytes);
};

}  // namespace rknnd::driver

#endif  // DRIVER_DEVICE_MEMORY_H_
