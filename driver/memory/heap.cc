// The heaps of this kernel. Called by daemon/core at start and once per
// allocation, on any thread. Sizes come from clients and were charged before.

#include "driver/memory/heap.h"

#include <fcntl.h>
#include <linux/dma-heap.h>
#include <linux/udmabuf.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <limits>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/posix/memfd.h"
#include "base/posix/overflow.h"
#include "base/status/status.h"

namespace rknnd::driver {
namespace {

// As /proc/PID/maps and fd show the memory.
constexpr char kMemfdName[] = "rknnd-buffer";

// dma-buf heaps in order of preference. Cached system memory first: the CPU
// reads and writes it at full speed, and an NPU behind an IOMMU needs no
// contiguous memory. Then those of CMA under their various names.
constexpr std::array<const char*, 5> kDmaHeaps = {
    "system", "cma", "linux,cma", "reserved", "default_cma_region"};

absl::StatusOr<uint64_t> WholePages(uint64_t size) {
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const std::optional<uint64_t> rounded = base::CheckedAlignUp(size, page);
  if (size == 0 || !rounded ||
      *rounded > static_cast<uint64_t>(std::numeric_limits<off_t>::max())) {
    return absl::InvalidArgumentError(
        absl::StrCat("a buffer cannot have ", size, " bytes"));
  }
  return *rounded;
}

absl::StatusOr<base::UniqueFd> OpenDeviceNode(const std::string& path) {
  base::UniqueFd node(open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!node.valid()) {
    return absl::ErrnoToStatus(errno, absl::StrCat("open '", path, "'"));
  }
  return node;
}

absl::Status CannotAllocate(int error, uint64_t size, const std::string& heap) {
  return absl::ErrnoToStatus(
      error, absl::StrCat("allocate ", size, " bytes from heap '", heap, "'"));
}

class MemfdHeap final : public Heap {
 public:
  [[nodiscard]] const std::string& name() const override { return name_; }

  absl::StatusOr<Allocation> Allocate(uint64_t size) override {
    RKNND_ASSIGN_OR_RETURN(const uint64_t pages, WholePages(size));
    RKNND_ASSIGN_OR_RETURN(base::UniqueFd fd, base::ToStatusOr(base::MakeMemfd(
                                                  kMemfdName, pages)));
    return Allocation{std::move(fd), pages};
  }

 private:
  const std::string name_ = "memfd";
};

// Makes dma-bufs of memfds, so that devices can import them where the kernel
// has no dma_heap.
class UdmabufHeap final : public Heap {
 public:
  explicit UdmabufHeap(base::UniqueFd node) : node_(std::move(node)) {}
  [[nodiscard]] const std::string& name() const override { return name_; }

  absl::StatusOr<Allocation> Allocate(uint64_t size) override {
    RKNND_ASSIGN_OR_RETURN(const uint64_t pages, WholePages(size));
    // The kernel insists on the seal against shrinking. The dma-buf keeps the
    // pages, not the memfd.
    RKNND_ASSIGN_OR_RETURN(
        const base::UniqueFd memory,
        base::ToStatusOr(base::MakeMemfd(kMemfdName, pages)));
    udmabuf_create request = {};
    request.memfd = static_cast<uint32_t>(memory.get());
    request.flags = UDMABUF_FLAGS_CLOEXEC;
    request.offset = 0;
    request.size = pages;
    base::UniqueFd fd(ioctl(node_.get(), UDMABUF_CREATE, &request));
    if (!fd.valid()) {
      // Its answer to a size above the module's parameter size_limit_mb.
      if (errno == EINVAL) {
        return absl::ResourceExhaustedError(
            absl::StrCat("udmabuf refuses ", pages,
                         " bytes: raise /sys/module/udmabuf/parameters/"
                         "size_limit_mb"));
      }
      return CannotAllocate(errno, pages, name_);
    }
    return Allocation{std::move(fd), pages};
  }

 private:
  const std::string name_ = "udmabuf";
  const base::UniqueFd node_;
};

class DmaHeap final : public Heap {
 public:
  DmaHeap(const std::string& name, base::UniqueFd node)
      : name_("dma_heap:" + name), node_(std::move(node)) {}
  [[nodiscard]] const std::string& name() const override { return name_; }

  absl::StatusOr<Allocation> Allocate(uint64_t size) override {
    RKNND_ASSIGN_OR_RETURN(const uint64_t pages, WholePages(size));
    dma_heap_allocation_data request = {};
    request.len = pages;
    request.fd_flags = O_RDWR | O_CLOEXEC;
    int result = 0;
    do {
      result = ioctl(node_.get(), DMA_HEAP_IOCTL_ALLOC, &request);
    } while (result != 0 && errno == EINTR);
    if (result != 0) return CannotAllocate(errno, pages, name_);
    return Allocation{base::UniqueFd(static_cast<int>(request.fd)), pages};
  }

 private:
  const std::string name_;
  const base::UniqueFd node_;
};

}  // namespace

std::unique_ptr<Heap> MakeMemfdHeap() { return std::make_unique<MemfdHeap>(); }

absl::StatusOr<std::unique_ptr<Heap>> OpenUdmabufHeap() {
  RKNND_ASSIGN_OR_RETURN(base::UniqueFd node, OpenDeviceNode("/dev/udmabuf"));
  return std::make_unique<UdmabufHeap>(std::move(node));
}

absl::StatusOr<std::unique_ptr<Heap>> OpenDmaHeap(const std::string& name) {
  // A name, not a path: the configuration says which.
  if (name.empty() || name[0] == '.' || name.find('/') != std::string::npos) {
    return absl::InvalidArgumentError(absl::StrCat(
        "'", name, "' is not the name of a heap in /dev/dma_heap"));
  }
  RKNND_ASSIGN_OR_RETURN(base::UniqueFd node,
                         OpenDeviceNode("/dev/dma_heap/" + name));
  return std::make_unique<DmaHeap>(name, std::move(node));
}

Heaps Heaps::Probe() {
  std::vector<std::unique_ptr<Heap>> heaps;
  for (const char* name : kDmaHeaps) {
    if (auto heap = OpenDmaHeap(name); heap.ok()) {
      heaps.push_back(*std::move(heap));
    }
  }
  if (auto heap = OpenUdmabufHeap(); heap.ok()) {
    heaps.push_back(*std::move(heap));
  }
  heaps.push_back(MakeMemfdHeap());
  return Heaps(std::move(heaps));
}

Heaps::Heaps(std::vector<std::unique_ptr<Heap>> heaps)
    : heaps_(std::move(heaps)) {}

absl::StatusOr<Allocation> Heaps::Allocate(uint64_t size,
                                           std::string* heap) const {
  // Rather a slower heap than none. The first reason is told: it is that of
  // the heap which should have served.
  absl::Status first = absl::UnavailableError("there is no heap");
  bool tried = false;
  for (const std::unique_ptr<Heap>& candidate : heaps_) {
    absl::StatusOr<Allocation> allocation = candidate->Allocate(size);
    if (allocation.ok()) {
      if (heap != nullptr) *heap = candidate->name();
      return allocation;
    }
    if (!tried) first = std::move(allocation).status();
    tried = true;
  }
  return first;
}

}  // namespace rknnd::driver
