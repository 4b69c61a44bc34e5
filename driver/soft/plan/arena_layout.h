// The tensors of one program while its steps are made: how long each lives, who
// would share whose bytes, what is read and written; and in the end where each
// lies in internal memory.
//
// Thread: the loading thread.

#ifndef DRIVER_SOFT_PLAN_ARENA_LAYOUT_H_
#define DRIVER_SOFT_PLAN_ARENA_LAYOUT_H_

#include <cstdint>
#include <vector>

#include "driver/device.h"
#include "driver/soft/plan/memory_plan.h"
#include "driver/soft/plan/sharing.h"

namespace rknnd::soft {

// Names a tensor of the arena until it has its place.
using StorageId = uint32_t;
inline constexpr StorageId kNoStorage = UINT32_MAX;

struct ArenaPlan {
  std::vector<Lifetime> tensors;
  Sharing sharing;
  MemoryPlan memory;  // of the groups that share
  std::vector<driver::TensorPlace> places;

  [[nodiscard]] uint64_t OffsetOf(StorageId s) const {
    return memory.offsets[sharing.group[s]] + sharing.offset[s];
  }
};

class ArenaLayout {
 public:
  // A tensor of `bytes`; `place` says what it is.
  StorageId Add(driver::TensorPlace place, uint64_t bytes);
  void Write(StorageId s, uint32_t step);
  void Read(StorageId s, uint32_t step, uint32_t layer);

  // `part` is the bytes of `whole` from `offset` on. `joins`: the step copies
  // the part into the whole, else the other way.
  void WishPart(StorageId part, StorageId whole, uint64_t offset, bool joins);
  // The step that writes `over` may do so where `home` lies, if it is the last
  // to read that.
  void WishOverwrite(StorageId over, StorageId home);

  [[nodiscard]] uint64_t size(StorageId s) const { return tensors_[s].size; }

  // Ends it. `programs` as for PlanMemory.
  ArenaPlan Place(uint32_t programs = 1);

 private:
  // What is not copied is neither read nor written.
  void ForgetCopies(const Sharing& sharing);

  struct Copy {
    StorageId read = kNoStorage, written = kNoStorage;
  };
  std::vector<Lifetime> tensors_;
  std::vector<driver::TensorPlace> places_;
  std::vector<SharingWish> wishes_;
  std::vector<Copy> copies_;  // that a wish saves
};

}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_PLAN_ARENA_LAYOUT_H_
