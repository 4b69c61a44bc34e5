// The heaps of this kernel. Called by daemon/core at start and once per
// allocation, on any thread. Sizes come from clients and were charged before.

#include "driver/memory/heap.h"

#include <fcntl.h>
#include <linux/dma-heap.h>
#include <linux/udmabuf.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/posix/memfd.h"
#include "base/status/status.h"
#include "base/values/overflow.h"

namespace rknnd::driver {
namespace {

// As /proc/PID/maps and fd show the memory.
constexpr char kMemfdName[] = "rknnd-buffer";

// Heaps in order of preference, where nothing is configured. System memory
// first: the CPU reads and writes it at full speed, and an NPU behind an IOMMU
// needs no contiguous memory. What is scarce comes after udmabuf, so that only
// those who need it take it: memory below 4 GiB, and CMA under the names that
// mainline and vendors' kernels give it.
constexpr std::array<const char*, 11> kKnownHeaps = {
    "dma_heap:system",
    "dma_heap:system-uncached",
    "udmabuf",
    "dma_heap:system-dma32",
    "dma_heap:system-uncached-dma32",
    "dma_heap:cma",
    "dma_heap:cma-uncached",
    "dma_heap:linux,cma",
    "dma_heap:reserved",
    "dma_heap:default_cma_region",
    "memfd"};
constexpr std::string_view kDmaHeapPrefix = "dma_heap:";
constexpr char kMemfdHeap[] = "memfd";

// Wishes that a heap does not meet, worst first as numbers: what an NPU without
// an IOMMU cannot reach at all, what some blocks cannot, what is slow or needs
// synchronising.
constexpr uint32_t kNotCached = 1;  // or cached, where it was not to be
constexpr uint32_t kNotDma32 = 2;
constexpr uint32_t kNotContiguous = 4;
// Beyond these: a better heap had none to give.
constexpr uint32_t kHeapFull = 8;
static_assert(kInsteadKinds == 2 * kHeapFull);

uint32_t Unmet(const HeapRequest& wanted, const HeapTraits& traits) {
  return (wanted.cached == traits.cached ? 0 : kNotCached) |
         (wanted.dma32 && !traits.dma32 ? kNotDma32 : 0) |
         (wanted.contiguous && !traits.contiguous ? kNotContiguous : 0);
}

std::string Words(const HeapTraits& traits) {
  return absl::StrCat(traits.cached ? "cached" : "uncached",
                      traits.dma32 ? ", below 4 GiB" : "",
                      traits.contiguous ? ", contiguous" : "");
}

// "contiguous, uncached".
std::string WordsOf(uint32_t unmet, const HeapRequest& wanted) {
  std::vector<const char*> words;
  if ((unmet & kNotContiguous) != 0) words.push_back("contiguous");
  if ((unmet & kNotDma32) != 0) words.push_back("below 4 GiB");
  if ((unmet & kNotCached) != 0) {
    words.push_back(wanted.cached ? "cached" : "uncached");
  }
  return absl::StrJoin(words, ", ");
}

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
    RKNND_RETURN_IF_ERROR(base::ToStatus(base::FillMemfd(fd.get(), pages)));
    return Allocation{std::move(fd), pages, traits()};
  }

 private:
  const std::string name_ = kMemfdHeap;
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
    return Allocation{std::move(fd), pages, traits()};
  }

 private:
  const std::string name_ = "udmabuf";
  const base::UniqueFd node_;
};

class DmaHeap final : public Heap {
 public:
  DmaHeap(const std::string& name, base::UniqueFd node)
      : name_(absl::StrCat(std::string(kDmaHeapPrefix), name)),
        traits_(TraitsOfDmaHeap(name)),
        node_(std::move(node)) {}
  [[nodiscard]] const std::string& name() const override { return name_; }
  [[nodiscard]] HeapTraits traits() const override { return traits_; }

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
    return Allocation{base::UniqueFd(static_cast<int>(request.fd)), pages,
                      traits_};
  }

 private:
  const std::string name_;
  const HeapTraits traits_;
  const base::UniqueFd node_;
};

}  // namespace

std::unique_ptr<Heap> MakeMemfdHeap() { return std::make_unique<MemfdHeap>(); }

absl::StatusOr<std::unique_ptr<Heap>> OpenUdmabufHeap() {
  RKNND_ASSIGN_OR_RETURN(base::UniqueFd node, OpenDeviceNode("/dev/udmabuf"));
  return std::make_unique<UdmabufHeap>(std::move(node));
}

HeapTraits TraitsOfDmaHeap(const std::string& name) {
  const auto has = [&name](std::string_view part) {
    return name.find(part) != std::string::npos;
  };
  HeapTraits traits;
  traits.cached = !has("uncached");
  traits.dma32 = has("dma32");
  // "reserved" is a name of the default CMA pool, where the device tree gives
  // it none.
  traits.contiguous = has("cma") || name == "reserved";
  return traits;
}

absl::Status CheckHeapName(const std::string& name) {
  if (name == "udmabuf" || name == kMemfdHeap) return absl::OkStatus();
  const bool prefixed =
      name.compare(0, kDmaHeapPrefix.size(), kDmaHeapPrefix) == 0;
  const std::string node = prefixed ? name.substr(kDmaHeapPrefix.size()) : "";
  // A name, not a path: the configuration says which.
  if (node.empty() || node[0] == '.' || node.find('/') != std::string::npos) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", name,
                     "' is not the name of a heap: use 'dma_heap:NAME' for "
                     "/dev/dma_heap/NAME, 'udmabuf' or 'memfd'"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Heap>> OpenDmaHeap(const std::string& name) {
  RKNND_RETURN_IF_ERROR(
      CheckHeapName(absl::StrCat(std::string(kDmaHeapPrefix), name)));
  RKNND_ASSIGN_OR_RETURN(base::UniqueFd node,
                         OpenDeviceNode("/dev/dma_heap/" + name));
  return std::make_unique<DmaHeap>(name, std::move(node));
}

namespace {

absl::StatusOr<std::unique_ptr<Heap>> OpenHeap(const std::string& name) {
  RKNND_RETURN_IF_ERROR(CheckHeapName(name));
  if (name == kMemfdHeap) return MakeMemfdHeap();
  if (name == "udmabuf") return OpenUdmabufHeap();
  return OpenDmaHeap(name.substr(kDmaHeapPrefix.size()));
}

}  // namespace

Heaps Heaps::Probe(const HeapConfig& config) {
  const bool configured = !config.order.empty();
  std::vector<std::string> names = config.order;
  if (!configured) names.assign(kKnownHeaps.begin(), kKnownHeaps.end());
  std::vector<std::unique_ptr<Heap>> heaps;
  std::vector<std::string> complaints;
  for (const std::string& name : names) {
    // Always there, and always the last.
    if (name == kMemfdHeap) continue;
    auto heap = OpenHeap(name);
    if (heap.ok()) {
      heaps.push_back(*std::move(heap));
    } else if (configured || !absl::IsNotFound(heap.status())) {
      complaints.push_back(absl::StrCat("heap '", name, "' cannot be used: ",
                                        std::string(heap.status().message())));
    }
  }
  heaps.push_back(MakeMemfdHeap());
  Heaps found(std::move(heaps), config);
  found.complaints_.insert(found.complaints_.begin(), complaints.begin(),
                           complaints.end());
  return found;
}

Heaps::Heaps(std::vector<std::unique_ptr<Heap>> heaps, const HeapConfig& config)
    : heaps_(std::move(heaps)),
      dma32_(config.dma32),
      contiguous_(config.contiguous) {
  const auto none = [this](bool HeapTraits::*trait) {
    return std::none_of(
        heaps_.begin(), heaps_.end(),
        [trait](const auto& heap) { return heap->traits().*trait; });
  };
  if (dma32_ && none(&HeapTraits::dma32)) {
    complaints_.emplace_back(
        "memory below 4 GiB is configured (memory.dma32), but no heap here "
        "gives it");
  }
  if (contiguous_ && none(&HeapTraits::contiguous)) {
    complaints_.emplace_back(
        "contiguous memory is configured (memory.contiguous), but no heap here "
        "gives it");
  }
}

absl::StatusOr<Allocation> Heaps::Allocate(HeapRequest request) const {
  request.dma32 |= dma32_;
  request.contiguous |= contiguous_;
  struct Candidate {
    Heap* heap;
    uint32_t rank;  // the lower the better
    uint32_t unmet;
  };
  std::vector<Candidate> candidates;
  for (const std::unique_ptr<Heap>& heap : heaps_) {
    const uint32_t unmet = Unmet(request, heap->traits());
    // Cached or not matters less than whether a device can have the memory.
    const bool last = heap->name() == kMemfdHeap;
    candidates.push_back({heap.get(), last ? kInsteadKinds : unmet, unmet});
  }
  std::stable_sort(
      candidates.begin(), candidates.end(),
      [](const Candidate& a, const Candidate& b) { return a.rank < b.rank; });
  // Rather a poorer heap than none. The first reason is told: it is that of
  // the heap which should have served.
  absl::Status first;
  for (const Candidate& candidate : candidates) {
    absl::StatusOr<Allocation> given =
        candidate.heap->AllocateWithSram(request.size, request.sram);
    if (!given.ok()) {
      if (first.ok()) first = std::move(given).status();
      continue;
    }
    const std::string& name = candidate.heap->name();
    given->traits = candidate.heap->traits();
    given->heap = name;
    const std::string lacks = WordsOf(candidate.unmet, request);
    if (!lacks.empty()) absl::StrAppend(&given->heap, " (not ", lacks, ")");
    if (first.ok() && lacks.empty()) return given;
    given->instead_kind = candidate.unmet | (first.ok() ? 0 : kHeapFull);
    given->instead = absl::StrCat(
        first.ok() ? absl::StrCat("no heap here gives memory that is ", lacks)
                   : std::string(first.message()),
        ": heap '", name, "' is used instead",
        first.ok() || lacks.empty() ? "" : absl::StrCat(", not ", lacks),
        "; there are: ", Describe());
    return given;
  }
  return first.ok() ? absl::UnavailableError("there is no heap") : first;
}

std::string Heaps::Describe() const {
  std::vector<std::string> heaps;
  for (const std::unique_ptr<Heap>& heap : heaps_) {
    heaps.push_back(
        absl::StrCat(heap->name(), " (", Words(heap->traits()), ")"));
  }
  return absl::StrJoin(heaps, ", ");
}

}  // namespace rknnd::driver
