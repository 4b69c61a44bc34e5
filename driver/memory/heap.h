// Where buffers come from: the heaps this kernel has, chosen by what is asked
// of the memory. Among those that have it, by preference: system memory,
// udmabuf, then what is scarce (below 4 GiB, contiguous), sealed memfd last.
// Called by daemon/core for client buffers and arenas.

#ifndef DRIVER_MEMORY_HEAP_H_
#define DRIVER_MEMORY_HEAP_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/posix/unique_fd.h"

namespace rknnd::driver {

// What is wanted of memory. Each is a wish: a heap without it serves when none
// has it, and says so (Allocation::instead).
struct HeapRequest {
  uint64_t size = 0;
  bool cached = true;       // CPUs read and write it through their caches
  bool dma32 = false;       // below 4 GiB: blocks such as RGA2 see no more
  bool contiguous = false;  // in one piece: devices without an IOMMU
  // So many of its first bytes in the NPU's SRAM, or fewer. Heaps that have
  // none to give serve all the same, without a word.
  uint64_t sram = 0;
};

// What the memory of a heap has.
struct HeapTraits {
  bool cached = true, dma32 = false, contiguous = false;
  friend bool operator==(const HeapTraits&, const HeapTraits&) = default;
};

struct Allocation {
  base::UniqueFd fd;
  uint64_t size = 0;  // what the kernel gave: page multiples
  HeapTraits traits;
  uint64_t sram = 0;  // its first bytes that lie in SRAM
  // For people: the heap, and what of the wishes it lacks.
  std::string heap = {};
  // Why this heap and not what was asked for, in a sentence; empty: as asked.
  std::string instead = {};
  // Which kind of sentence, below kInsteadKinds: so that each is told once.
  uint32_t instead_kind = 0;
};
inline constexpr uint32_t kInsteadKinds = 16;

// Thread: any.
class Heap {
 public:
  virtual ~Heap() = default;
  // "dma_heap:system", "udmabuf", "memfd".
  [[nodiscard]] virtual const std::string& name() const = 0;
  [[nodiscard]] virtual HeapTraits traits() const { return {}; }
  // Zeroed memory of at least `size` bytes.
  virtual absl::StatusOr<Allocation> Allocate(uint64_t size) = 0;
  // The same, with up to `sram` bytes of SRAM at its start.
  virtual absl::StatusOr<Allocation> AllocateWithSram(uint64_t size,
                                                      uint64_t /*sram*/) {
    return Allocate(size);
  }
};

std::unique_ptr<Heap> MakeMemfdHeap();
// kNotFound naming the path where the kernel lacks the device.
absl::StatusOr<std::unique_ptr<Heap>> OpenUdmabufHeap();
absl::StatusOr<std::unique_ptr<Heap>> OpenDmaHeap(const std::string& name);

// What the memory of /dev/dma_heap/`name` has, by the names that kernels use.
HeapTraits TraitsOfDmaHeap(const std::string& name);

// An operator's word on heaps.
struct HeapConfig {
  // Heap::name() of those to use, best first. Empty: all that are known.
  std::vector<std::string> order = {};
  // Of all memory, whoever asks.
  bool dma32 = false, contiguous = false;
};

// INVALID_ARGUMENT for what cannot be the name of a heap.
absl::Status CheckHeapName(const std::string& name);

// The heaps of this machine, best first; memfd is always the last. Thread: any.
class Heaps {
 public:
  static Heaps Probe(const HeapConfig& config = {});
  explicit Heaps(std::vector<std::unique_ptr<Heap>> heaps,
                 const HeapConfig& config = {});

  // From the heap that has most of what is asked, or the next that can.
  // Contiguous memory counts most, then memory below 4 GiB; memfd, which no
  // other device can import, serves when nothing else can.
  absl::StatusOr<Allocation> Allocate(HeapRequest request) const;
  [[nodiscard]] const std::vector<std::unique_ptr<Heap>>& all() const {
    return heaps_;
  }
  // "dma_heap:system (cached), memfd (cached)".
  [[nodiscard]] std::string Describe() const;
  // What was configured and cannot be had, or is there and cannot be opened: a
  // sentence each.
  [[nodiscard]] const std::vector<std::string>& complaints() const {
    return complaints_;
  }

 private:
  std::vector<std::unique_ptr<Heap>> heaps_;
  bool dma32_ = false, contiguous_ = false;
  std::vector<std::string> complaints_;
};

}  // namespace rknnd::driver

#endif  // DRIVER_MEMORY_HEAP_H_
