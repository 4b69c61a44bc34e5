// Memory that the daemon has named to a worker: buffers of programs, and
// internal memory of cores. Mapped once, whatever number of contexts has it
// bound.

#ifndef DRIVER_RKNNRT_WORKER_MEMORIES_H_
#define DRIVER_RKNNRT_WORKER_MEMORIES_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>

#include "base/posix/mapping.h"
#include "base/posix/mutex.h"
#include "base/posix/unique_fd.h"
#include "base/values/expected.h"

namespace rknnd::rknnrt {

// Lives as long as a context has it bound.
struct NamedMemory {
  base::UniqueFd fd;
  base::Mapping mapping;          // of the file, from its start on
  uint64_t offset = 0, size = 0;  // in the file
  // The daemon has let it go: who has it bound does so too.
  std::atomic<bool> forgotten{false};
};

// Thread: any.
class Memories {
 public:
  base::Expected<void> Add(uint32_t id, base::UniqueFd fd, uint64_t offset,
                           uint64_t size);
  // Null: there is none.
  [[nodiscard]] std::shared_ptr<NamedMemory> Find(uint32_t id) const;
  void Forget(uint32_t id);

 private:
  mutable base::Mutex mutex_;
  std::map<uint32_t, std::shared_ptr<NamedMemory>> all_
      RKNND_GUARDED_BY(mutex_);
};

}  // namespace rknnd::rknnrt

#endif  // DRIVER_RKNNRT_WORKER_MEMORIES_H_
