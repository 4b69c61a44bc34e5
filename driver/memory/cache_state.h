// When a device that computes on the CPU must have the kernel synchronise the
// caches of memory it shares with others: who wrote it last, who reads it next.
// Owned by the device's object for a piece of memory, asked around each job.
//
// What such a device is to the caches: a CPU. Programs' CPUs see its writes,
// and it theirs, without any help; other devices (a camera, a scaler, an
// encoder) do not. Nobody tells of their accesses, so that a sync is left out
// only where no other device can have come between, or where the program says
// that it synchronises by itself.

#ifndef DRIVER_MEMORY_CACHE_STATE_H_
#define DRIVER_MEMORY_CACHE_STATE_H_

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "absl/status/status.h"
#include "base/posix/mutex.h"
#include "driver/device.h"
#include "driver/memory/cache_sync.h"

namespace rknnd::driver {

// What the kernel knows of memory's caches, and its two calls around an access
// by the CPU. Tests have a table in its place. Thread: any.
class CacheCalls {
 public:
  virtual ~CacheCalls() = default;
  [[nodiscard]] virtual bool IsDmaBuf(int fd) const {
    return driver::IsDmaBuf(fd);
  }
  virtual absl::Status Begin(int fd, CpuAccess access) {
    return BeginCpuAccess(fd, access);
  }
  virtual absl::Status End(int fd, CpuAccess access) {
    return EndCpuAccess(fd, access);
  }
};

// Of one device. Thread: any.
class CacheSyncCount {
 public:
  void CountDone() { done_.fetch_add(1, std::memory_order_relaxed); }
  void CountSkipped() { skipped_.fetch_add(1, std::memory_order_relaxed); }
  [[nodiscard]] CacheSyncs get() const {
    return {done_.load(std::memory_order_relaxed),
            skipped_.load(std::memory_order_relaxed)};
  }

 private:
  std::atomic<uint64_t> done_{0}, skipped_{0};
};

// One piece of memory. Allocates nothing. Thread: any.
class CacheState {
 public:
  // Who is taken to have written last.
  //
  //                    a job wrote a range
  //   kOthers ---------------------------> kDevice, of that range
  //      ^                                    |
  //      |  rknn_mem_sync that we hear of,    |
  //      +------------------------------------+
  //         a job or a sync that failed
  //
  //   kCoherent: nothing to synchronise ever (a memfd, an uncached heap).
  //   Memory that a program brought stays kOthers: its owner goes on using it.
  //   What lies beside the range is others': a program may have its camera's
  //   picture and its answers in one piece of memory.
  enum class Writer : uint8_t { kCoherent, kOthers, kDevice };

  // From its first byte to the one behind its last.
  struct Range {
    uint64_t begin = 0, end = 0;
  };

  // `is_dma_buf`: the kernel has calls for it.
  CacheState(MemoryOrigin origin, bool is_dma_buf)
      : brought_(origin == MemoryOrigin::kBrought),
        coherent_(!is_dma_buf || origin == MemoryOrigin::kUncachedHeap) {}

  [[nodiscard]] bool coherent() const { return coherent_; }
  [[nodiscard]] Writer writer() const {
    if (coherent_) return Writer::kCoherent;
    base::MutexLock lock(mutex_);
    return written_.end == 0 ? Writer::kOthers : Writer::kDevice;
  }

  // Whether a job that is about to read (or write) this must synchronise.
  // `program_does`: RKNN_FLAG_DISABLE_FLUSH_INPUT_MEM_CACHE, or _OUTPUT_. These
  // are about memory of rknn_create_mem: for what was brought the vendor's
  // runtime makes no call anyway, so that programs hand it a camera's frames
  // without any, which a device on the CPU cannot read like that.
  [[nodiscard]] bool MustSync(CpuAccess access, bool program_does,
                              Range range) const {
    if (coherent_) return false;
    if (brought_) return true;
    if (program_does) return false;
    // Writing has readers that nobody knows: it is always made visible.
    if (access != CpuAccess::kRead) return true;
    // What a job wrote is there for the next one.
    base::MutexLock lock(mutex_);
    return range.begin < written_.begin || range.end > written_.end;
  }
  // A job has written this, and what had to be synchronised was.
  void Written(Range range) {
    if (brought_ || coherent_ || range.begin >= range.end) return;
    base::MutexLock lock(mutex_);
    // One range is enough for what jobs leave each other; of two that do not
    // meet the older is taken for others'.
    if (range.begin <= written_.end && written_.begin <= range.end) {
      written_.begin = std::min(written_.begin, range.begin);
      written_.end = std::max(written_.end, range.end);
    } else {
      written_ = range;
    }
  }
  // Somebody else may have.
  void Forget() {
    base::MutexLock lock(mutex_);
    written_ = kNothing;
  }

 private:
  // Meets no range, and holds none.
  static constexpr Range kNothing{UINT64_MAX, 0};

  const bool brought_;
  const bool coherent_;
  mutable base::Mutex mutex_;
  Range written_ RKNND_GUARDED_BY(mutex_) = kNothing;  // by jobs, last
};

}  // namespace rknnd::driver

#endif  // DRIVER_MEMORY_CACHE_STATE_H_
