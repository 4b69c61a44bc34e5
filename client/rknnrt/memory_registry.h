// The rknn_tensor_mem structs that are alive. A program holds pointers to them
// and may destroy one twice, late, or with another context's handle: a pointer
// is looked up here before it is ever followed.

#ifndef CLIENT_RKNNRT_MEMORY_REGISTRY_H_
#define CLIENT_RKNNRT_MEMORY_REGISTRY_H_

#include <memory>
#include <unordered_map>

#include "base/posix/mutex.h"
#include "client/include/rknn_api.h"
#include "client/rknnrt/buffer.h"

namespace rknnd::client {

// One rknn_tensor_mem and the buffer behind it.
struct TensorMemory {
  rknn_tensor_mem api{};
  std::unique_ptr<Buffer> buffer;
};

// Thread: any.
class MemoryRegistry {
 public:
  // Keeps `memory`; the pointer is the program's from now on.
  rknn_tensor_mem* Add(std::shared_ptr<TensorMemory> memory);
  // Null when `api` is not alive.
  std::shared_ptr<TensorMemory> Find(const rknn_tensor_mem* api);
  // Null when it was not alive. What still uses it keeps it until it is done.
  std::shared_ptr<TensorMemory> Remove(const rknn_tensor_mem* api);

 private:
  base::Mutex mutex_;
  std::unordered_map<const rknn_tensor_mem*, std::shared_ptr<TensorMemory>>
      memories_ RKNND_GUARDED_BY(mutex_);
};

}  // namespace rknnd::client

#endif  // CLIENT_RKNNRT_MEMORY_REGISTRY_H_
