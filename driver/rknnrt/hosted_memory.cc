#include "driver/rknnrt/hosted_memory.h"

#include <atomic>
#include <utility>

#include "base/status/status.h"
#include "driver/rknnrt/worker_process.h"

namespace rknnd::rknnrt {
namespace {

std::atomic<uint32_t> last_id{0};

}  // namespace

absl::StatusOr<std::shared_ptr<HostedMemory>> HostedMemory::Of(
    const driver::MemoryRef& memory) {
  RKNND_ASSIGN_OR_RETURN(base::UniqueFd fd,
                         base::ToStatusOr(base::Duplicate(memory.fd)));
  return std::shared_ptr<HostedMemory>(new HostedMemory(std::move(fd), memory));
}

HostedMemory::HostedMemory(base::UniqueFd fd, const driver::MemoryRef& memory)
    : id_(++last_id),
      fd_(std::move(fd)),
      offset_(memory.offset),
      size_(memory.size) {}

HostedMemory::~HostedMemory() {
  base::MutexLock lock(mutex_);
  for (const auto& known : known_by_) {
    if (const auto worker = known.lock()) worker->Forget(id_);
  }
}

void HostedMemory::NoteKnownBy(const std::shared_ptr<WorkerProcess>& worker) {
  base::MutexLock lock(mutex_);
  // Those of workers that are gone.
  std::erase_if(known_by_, [](const auto& known) { return known.expired(); });
  known_by_.push_back(worker);
}

}  // namespace rknnd::rknnrt
