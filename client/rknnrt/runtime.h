// What one process holds of the library: its connection to the NPU, its
// contexts and its memories. Made at the first call; never destroyed, because
// threads of the program may be inside a call while the process exits.
//
// Fork: the child has a copy of all this and the right to none of it. It closes
// the inherited session as it begins (ForkCleanup), and its first call starts a
// new Runtime; the old one, whose locks may be held by threads that do not
// exist here, is left untouched. Handles of the parent are refused with a text
// that says so.
//
// Locks, each innermost but for the order given:
//   target_mutex_          over the opening of the target, requests included
//   the table's and the registry's own, for a look-up
//   Context::mutex_        over a call on one context; see there
// None is held while a run is waited for.

#ifndef CLIENT_RKNNRT_RUNTIME_H_
#define CLIENT_RKNNRT_RUNTIME_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "base/posix/mutex.h"
#include "base/values/expected.h"
#include "client/rknnrt/completion_queue.h"
#include "client/rknnrt/context/context.h"
#include "client/rknnrt/handle_table.h"
#include "client/rknnrt/memory_registry.h"
#include "client/session/target.h"

namespace rknnd::client {

// Thread: any.
class Runtime {
 public:
  // This process's; after a fork the child's own.
  static Runtime& Get();

  // The connection that RKNND_TARGET names, opened when first asked for.
  base::Expected<std::shared_ptr<Target>> target();

  // The context behind a handle, or what is wrong with the handle.
  base::Expected<std::shared_ptr<Context>> FindContext(uint64_t handle);
  // Likewise; the handle is free afterwards.
  base::Expected<std::shared_ptr<Context>> RemoveContext(uint64_t handle);
  // The handle is another context's, if it is still alive.
  void ReplaceContext(uint32_t handle, std::shared_ptr<Context> context) {
    contexts_.Fill(handle, std::move(context));
  }
  // Asks `create(number)` for a context and gives it the number as its handle.
  template <class Create>
  base::Expected<uint32_t> AddContext(Create create) {
    const uint32_t handle = contexts_.Reserve();
    if (handle == 0) return TooManyContexts();
    NoteHandle(handle);
    try {
      base::Expected<std::shared_ptr<Context>> context = create(handle);
      if (context.ok()) {
        contexts_.Fill(handle, *std::move(context));
        return handle;
      }
      contexts_.Remove(handle);
      return std::move(context).error();
    } catch (...) {
      contexts_.Remove(handle);
      throw;
    }
  }

  // Likewise for queues of completions.
  base::Expected<uint32_t> AddQueue();
  base::Expected<std::shared_ptr<CompletionQueue>> FindQueue(uint64_t handle);
  base::Expected<std::shared_ptr<CompletionQueue>> RemoveQueue(uint64_t handle);

  // The memory behind a pointer, or what is wrong with the pointer.
  base::Expected<std::shared_ptr<TensorMemory>> FindMemory(
      const rknn_tensor_mem* memory);
  base::Expected<std::shared_ptr<TensorMemory>> RemoveMemory(
      const rknn_tensor_mem* memory);
  MemoryRegistry& memories() { return memories_; }

 private:
  Runtime(uint32_t forks, Runtime* parent);

  static base::Error TooManyContexts();
  [[nodiscard]] base::Error NoContext(uint64_t handle) const;
  [[nodiscard]] base::Error NoQueue(uint64_t handle) const;
  [[nodiscard]] base::Error NoMemory() const;
  void NoteHandle(uint32_t handle);

  const uint32_t forks_;   // how many forks lie before this one
  Runtime* const parent_;  // kept only so that it is not lost
  // Generation of the newest handle, for a child to continue from.
  std::atomic<uint32_t> newest_generation_{0};
  std::atomic<uint32_t> newest_queue_{0};  // likewise

  HandleTable<Context> contexts_;
  HandleTable<CompletionQueue> queues_;
  MemoryRegistry memories_;
  base::Mutex target_mutex_;
  std::shared_ptr<Target> target_ RKNND_GUARDED_BY(target_mutex_);
};

}  // namespace rknnd::client

#endif  // CLIENT_RKNNRT_RUNTIME_H_
