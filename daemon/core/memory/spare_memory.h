// Memory of this process that models have let go of and that the C library
// keeps for later: given back to the kernel, once for many models, on a thread
// that nobody's run waits for. Used by the registry and by what frees models.

#ifndef DAEMON_CORE_MEMORY_SPARE_MEMORY_H_
#define DAEMON_CORE_MEMORY_SPARE_MEMORY_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "base/posix/event_loop.h"
#include "daemon/core/memory/paging.h"

namespace rknnd::core {

// Looking for what can be given back takes milliseconds, and as long nobody
// else allocates from where it looks. So it is done for what is worth it, and
// never for each frame.
//
// Thread: any.
class SpareMemory : public std::enable_shared_from_this<SpareMemory> {
 public:
  // `give_back` is called on `thread`; null: what is freed is kept.
  SpareMemory(base::Executor* thread, std::function<void()> give_back)
      : thread_(thread), give_back_(std::move(give_back)) {}

  // So much was freed, by a model that went or by the loading of one.
  void NoteFreed(uint64_t bytes) {
    if (give_back_ == nullptr || bytes <= kInlineBytes) return;
    if (asked_.exchange(true)) return;
    thread_->Post([weak = weak_from_this()] {
      const auto self = weak.lock();
      if (self == nullptr) return;
      // First: what is freed from now on may be missed by this look.
      self->asked_.store(false);
      self->give_back_();
    });
  }

 private:
  base::Executor* const thread_;
  const std::function<void()> give_back_;
  std::atomic<bool> asked_{false};
};

}  // namespace rknnd::core

#endif  // DAEMON_CORE_MEMORY_SPARE_MEMORY_H_
