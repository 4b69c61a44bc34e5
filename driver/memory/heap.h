// Where buffers come from: the heaps this kernel has, in order of preference
// dma_heap, udmabuf, sealed memfd. Called by daemon/core for client buffers
// and arenas.

#ifndef DRIVER_MEMORY_HEAP_H_
#define DRIVER_MEMORY_HEAP_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/posix/unique_fd.h"

namespace rknnd::driver {

struct Allocation {
  base::UniqueFd fd;
  uint64_t size = 0;  // what the kernel gave: page multiples
};

// Thread: any.
class Heap {
 public:
  virtual ~Heap() = default;
  // "dma_heap:system", "udmabuf", "memfd".
  [[nodiscard]] virtual const std::string& name() const = 0;
  // Zeroed memory of at least `size` bytes.
  virtual absl::StatusOr<Allocation> Allocate(uint64_t size) = 0;
};

std::unique_ptr<Heap> MakeMemfdHeap();
// kNotFound naming the path where the kernel lacks the device.
absl::StatusOr<std::unique_ptr<Heap>> OpenUdmabufHeap();
absl::StatusOr<std::unique_ptr<Heap>> OpenDmaHeap(const std::string& name);

// The heaps of this machine, best first; memfd is always the last.
class Heaps {
 public:
  static Heaps Probe();
  explicit Heaps(std::vector<std::unique_ptr<Heap>> heaps);

  // From the best heap that can; the name of the one used goes to `*heap`,
  // unless null.
  absl::StatusOr<Allocation> Allocate(uint64_t size, std::string* heap) const;
  [[nodiscard]] const std::vector<std::unique_ptr<Heap>>& all() const {
    return heaps_;
  }

 private:
  std::vector<std::unique_ptr<Heap>> heaps_;
};

}  // namespace rknnd::driver

#endif  // DRIVER_MEMORY_HEAP_H_
