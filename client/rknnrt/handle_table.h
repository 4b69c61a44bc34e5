// Numbers for objects of this process: what rknn_context is. A handle is a
// non-zero 32-bit number of index and generation, never a pointer, so that a
// stale or invented one is found out. It is also the number the daemon knows
// the context by.
//
//   31            14 13         0
//   | generation 18 | index  14 |     generation 0 is never given
//
// Generations count over the whole table: a handle comes again only after
// 262143 others. The lock is held for a look-up or an insertion and nothing
// else, and is the innermost one.

#ifndef CLIENT_RKNNRT_HANDLE_TABLE_H_
#define CLIENT_RKNNRT_HANDLE_TABLE_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/posix/mutex.h"

namespace rknnd::client {

// Thread: any.
template <class Object>
class HandleTable {
 public:
  static constexpr uint32_t kIndexBits = 14;
  // More than a daemon allows one session (4096), so that its words are the
  // ones a program reads.
  static constexpr uint32_t kCapacity = uint32_t{1} << kIndexBits;
  static constexpr uint32_t kMaxGeneration =
      (uint32_t{1} << (32 - kIndexBits)) - 1;

  HandleTable() = default;
  // Continues the numbers of an earlier table, so that none of its handles is
  // valid here.
  explicit HandleTable(uint32_t generation) : generation_(generation) {}

  // Takes a handle for an object that Fill() brings or Remove() gives up; Find
  // does not know it before. 0: the table is full.
  uint32_t Reserve() {
    const base::MutexLock lock(mutex_);
    uint32_t index = 0;
    if (!free_.empty()) {
      index = free_.back();
      free_.pop_back();
    } else if (slots_.size() < kCapacity) {
      index = static_cast<uint32_t>(slots_.size());
      slots_.emplace_back();
      // Remove() then never allocates.
      free_.reserve(slots_.capacity());
    } else {
      return 0;
    }
    generation_ = generation_ == kMaxGeneration ? 1 : generation_ + 1;
    slots_[index].handle = (generation_ << kIndexBits) | index;
    return slots_[index].handle;
  }

  void Fill(uint32_t handle, std::shared_ptr<Object> object) {
    const base::MutexLock lock(mutex_);
    if (Slot* slot = SlotOf(handle)) slot->object = std::move(object);
  }

  // Null for a handle that is not alive. Takes any number: 64-bit ones come
  // from programs.
  std::shared_ptr<Object> Find(uint64_t handle) {
    const base::MutexLock lock(mutex_);
    Slot* slot = SlotOf(handle);
    return slot == nullptr ? nullptr : slot->object;
  }

  // The object, if the handle was alive; it is not any more.
  std::shared_ptr<Object> Remove(uint64_t handle) {
    const base::MutexLock lock(mutex_);
    Slot* slot = SlotOf(handle);
    if (slot == nullptr) return nullptr;
    free_.push_back(static_cast<uint32_t>(slot - slots_.data()));
    slot->handle = 0;
    return std::exchange(slot->object, nullptr);
  }

 private:
  struct Slot {
    uint32_t handle = 0;  // 0: free
    std::shared_ptr<Object> object;
  };

  Slot* SlotOf(uint64_t handle) RKNND_REQUIRES(mutex_) {
    const uint64_t index = handle & (kCapacity - 1);
    if (handle == 0 || index >= slots_.size()) return nullptr;
    Slot& slot = slots_[index];
    return slot.handle == handle ? &slot : nullptr;
  }

  base::Mutex mutex_;
  std::vector<Slot> slots_ RKNND_GUARDED_BY(mutex_);
  std::vector<uint32_t> free_ RKNND_GUARDED_BY(mutex_);
  uint32_t generation_ RKNND_GUARDED_BY(mutex_) = 0;
};

}  // namespace rknnd::client

#endif  // CLIENT_RKNNRT_HANDLE_TABLE_H_
