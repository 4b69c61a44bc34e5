// CPU caches around one job of the software NPU: before its first layer reads
// and after its last one has written. Each piece of memory once a side, however
// many tensors, slices and cores there are. Called by SoftDevice on the job's
// thread.

#ifndef DRIVER_SOFT_JOB_CACHES_H_
#define DRIVER_SOFT_JOB_CACHES_H_

#include <vector>

#include "absl/status/status.h"
#include "driver/device.h"
#include "driver/memory/cache_state.h"
#include "driver/soft/attached_memory.h"

namespace rknnd::soft {

// Thread: worker; one job at a time. What it needs room for is kept, so that
// the next job of the same kind allocates nothing.
class JobCaches {
 public:
  // Makes what others wrote visible to the job. When one call fails those
  // before it are ended.
  absl::Status Begin(const driver::JobRequest& job, driver::CacheCalls& calls,
                     driver::CacheSyncCount& count);
  // Makes what the job wrote visible to others; all of it, whatever fails.
  // `good`: it has written all that it was to.
  absl::Status End(driver::CacheCalls& calls, bool good);

 private:
  // A tensor's, in memory that has caches.
  struct Use {
    AttachedMemory* memory;
    driver::CpuAccess access;
    driver::CacheState::Range range;
    bool leads;  // the first of its memory and side: it is synchronised
    bool sync;   // whether it is
  };

  void AddTensors(const driver::JobRequest& job, driver::Direction direction);
  void Add(driver::Memory* memory, driver::CpuAccess access,
           driver::CacheState::Range range, bool program_does);

  std::vector<Use> uses_;
};

}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_JOB_CACHES_H_
