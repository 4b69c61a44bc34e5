// Called on the program's threads.

#include "client/rknnrt/memory_registry.h"

#include <utility>

namespace rknnd::client {

rknn_tensor_mem* MemoryRegistry::Add(std::shared_ptr<TensorMemory> memory) {
  rknn_tensor_mem* const api = &memory->api;
  const base::MutexLock lock(mutex_);
  memories_.emplace(api, std::move(memory));
  return api;
}

std::shared_ptr<TensorMemory> MemoryRegistry::Find(const rknn_tensor_mem* api) {
  const base::MutexLock lock(mutex_);
  const auto found = memories_.find(api);
  return found == memories_.end() ? nullptr : found->second;
}

std::shared_ptr<TensorMemory> MemoryRegistry::Remove(
    const rknn_tensor_mem* api) {
  const base::MutexLock lock(mutex_);
  const auto found = memories_.find(api);
  if (found == memories_.end()) return nullptr;
  std::shared_ptr<TensorMemory> memory = std::move(found->second);
  memories_.erase(found);
  return memory;
}

}  // namespace rknnd::client
