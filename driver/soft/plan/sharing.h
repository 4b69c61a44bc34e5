// Which tensors of a program share their bytes: an elementwise layer writes
// over what it reads for the last time, and the parts of a Concat, Split or
// Slice lie inside the whole, so that nothing is copied.
//
// Thread: the loading thread. Deterministic: equal inputs, equal answer.

#ifndef DRIVER_SOFT_PLAN_SHARING_H_
#define DRIVER_SOFT_PLAN_SHARING_H_

#include <cstdint>
#include <span>
#include <vector>

#include "driver/soft/plan/memory_plan.h"

namespace rknnd::soft {

// A tensor that had better lie where another one does. Offsets are such that
// what lies there stays aligned.
struct SharingWish {
  enum class Kind : uint8_t {
    kPart,       // `tensor` is the bytes of `home` from `offset` on
    kOverwrite,  // `tensor` is written by the step that reads `home` last,
                 // each element after it is read
  };
  Kind kind = Kind::kPart;
  uint32_t tensor = 0, home = 0;
  uint64_t offset = 0;
};

struct Sharing {
  std::vector<uint32_t> group;   // of each tensor
  std::vector<uint64_t> offset;  // of each tensor in its group
  std::vector<Lifetime> groups;  // to be placed; no two share anything
  std::vector<bool> granted;     // of each wish
};

// Grants, in their order, the wishes that leave each tensor whole from its
// first to its last step and make no step's memory the fullest. `programs` as
// for PlanMemory.
Sharing ShareStorage(std::span<const Lifetime> tensors,
                     std::span<const SharingWish> wishes,
                     uint32_t programs = 1);

// What no plan can be below: the most bytes that hold a living tensor at one
// step, those that are shared counted once.
uint64_t LowerBound(std::span<const Lifetime> tensors, const Sharing& sharing);

}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_PLAN_SHARING_H_
