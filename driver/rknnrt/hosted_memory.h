// A piece of attached memory as workers know it: by a number, and a descriptor
// that each of them is given when a job first brings it.

#ifndef DRIVER_RKNNRT_HOSTED_MEMORY_H_
#define DRIVER_RKNNRT_HOSTED_MEMORY_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "base/posix/mutex.h"
#include "base/posix/unique_fd.h"
#include "driver/device_memory.h"

namespace rknnd::rknnrt {

class WorkerProcess;

// Ends, for the workers too, with the memory it belongs to. Thread: any.
class HostedMemory {
 public:
  // Keeps a descriptor of its own.
  static absl::StatusOr<std::shared_ptr<HostedMemory>> Of(
      const driver::MemoryRef& memory);
  ~HostedMemory();
  HostedMemory(const HostedMemory&) = delete;
  HostedMemory& operator=(const HostedMemory&) = delete;

  [[nodiscard]] uint32_t id() const { return id_; }
  [[nodiscard]] int fd() const { return fd_.get(); }
  [[nodiscard]] uint64_t offset() const { return offset_; }
  [[nodiscard]] uint64_t size() const { return size_; }
  // `worker` has it, and is to let it go.
  void NoteKnownBy(const std::shared_ptr<WorkerProcess>& worker);

 private:
  HostedMemory(base::UniqueFd fd, const driver::MemoryRef& memory);

  const uint32_t id_;  // of no other one, ever
  const base::UniqueFd fd_;
  const uint64_t offset_, size_;
  base::Mutex mutex_;
  std::vector<std::weak_ptr<WorkerProcess>> known_by_ RKNND_GUARDED_BY(mutex_);
};

}  // namespace rknnd::rknnrt

#endif  // DRIVER_RKNNRT_HOSTED_MEMORY_H_
