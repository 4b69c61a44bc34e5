#include "driver/rknnrt/worker/memories.h"

#include <utility>

namespace rknnd::rknnrt {

base::Expected<void> Memories::Add(uint32_t id, base::UniqueFd fd,
                                   uint64_t offset, uint64_t size) {
  // The vendor's offsets count from the start of the file and of its mapping.
  base::Expected<base::Mapping> mapping =
      base::Mapping::OfFd(fd.get(), 0, static_cast<size_t>(offset + size),
                          base::Mapping::Access::kReadWrite);
  if (!mapping.ok()) {
    mapping =
        base::Mapping::OfFd(fd.get(), 0, static_cast<size_t>(offset + size),
                            base::Mapping::Access::kRead);
  }
  if (!mapping.ok()) return std::move(mapping).error();
  auto memory = std::make_shared<NamedMemory>();
  memory->fd = std::move(fd);
  memory->mapping = *std::move(mapping);
  memory->offset = offset;
  memory->size = size;
  base::MutexLock lock(mutex_);
  all_[id] = std::move(memory);
  return {};
}

std::shared_ptr<NamedMemory> Memories::Find(uint32_t id) const {
  base::MutexLock lock(mutex_);
  const auto found = all_.find(id);
  return found == all_.end() ? nullptr : found->second;
}

void Memories::Forget(uint32_t id) {
  base::MutexLock lock(mutex_);
  const auto found = all_.find(id);
  if (found == all_.end()) return;
  found->second->forgotten = true;
  all_.erase(found);
}

}  // namespace rknnd::rknnrt
