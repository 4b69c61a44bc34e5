// Memory by its address on the SoC's bus: of a carve-out that no dma-buf names.
// Whoever may read or write it can do so with all that lies there, so that the
// daemon's configuration names each user and range. Opened at start; asked by
// daemon/core with a client's numbers.

#ifndef DRIVER_MEMORY_PHYSICAL_H_
#define DRIVER_MEMORY_PHYSICAL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/posix/unique_fd.h"
#include "driver/memory/import.h"

namespace rknnd::driver {

// What one user may reach.
struct PhysicalWindow {
  uint32_t uid = 0;
  uint64_t begin = 0, size = 0;
  std::string device = "/dev/mem";  // where an offset is an address

  friend bool operator==(const PhysicalWindow&,
                         const PhysicalWindow&) = default;
};

// A size that is not 0, an end that exists, a device with its whole path.
absl::Status CheckWindow(const PhysicalWindow& window);

// Thread: any; immutable once open.
class PhysicalMemory {
 public:
  // Each device is opened once, and for good. An error names it.
  static absl::StatusOr<PhysicalMemory> Open(
      const std::vector<PhysicalWindow>& windows);

  struct Place {
    int fd = -1;  // borrowed; the address is the offset in it
    MemoryIdentity identity;
  };
  // PERMISSION_DENIED with the key to set, where no window of this user has all
  // of the range.
  [[nodiscard]] absl::StatusOr<Place> Find(uint32_t uid, uint64_t address,
                                           uint64_t size) const;

 private:
  struct Node {
    std::string path;
    base::UniqueFd fd;
    MemoryIdentity identity;
  };
  std::vector<Node> nodes_;
  std::vector<PhysicalWindow> windows_;
};

}  // namespace rknnd::driver

#endif  // DRIVER_MEMORY_PHYSICAL_H_
