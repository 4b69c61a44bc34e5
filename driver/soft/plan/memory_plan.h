// Where each intermediate tensor lies in internal memory, so that tensors that
// live at the same time never overlap and the whole is small.
//
// Thread: the loading thread. Deterministic: equal inputs, equal plan.

#ifndef DRIVER_SOFT_PLAN_MEMORY_PLAN_H_
#define DRIVER_SOFT_PLAN_MEMORY_PLAN_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace rknnd::soft {

// A tensor's life: written at step `first`, read for the last time at `last`.
struct Lifetime {
  uint64_t size = 0;
  uint32_t first = 0, last = 0;
};

struct MemoryPlan {
  std::vector<uint64_t> offsets;  // of each lifetime, kTensorAlignment-aligned
  uint64_t size = 0;
};

// A cache line, and what AVX-512 loads at once.
inline constexpr uint64_t kTensorAlignment = 64;

// What a tensor of that size takes.
inline uint64_t Aligned(uint64_t size) {
  return std::max<uint64_t>(
      (size + kTensorAlignment - 1) / kTensorAlignment * kTensorAlignment,
      kTensorAlignment);
}

// Whether there is a step at which both live.
inline bool Meet(const Lifetime& a, const Lifetime& b) {
  return a.first <= b.last && b.first <= a.last;
}

// `programs`: how many such plans are made in a row; large ones then get a part
// of the time that one would.
MemoryPlan PlanMemory(std::span<const Lifetime> lifetimes,
                      uint32_t programs = 1);

// What no plan can be below: the most that is alive at one step.
uint64_t LowerBound(std::span<const Lifetime> lifetimes);

}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_PLAN_MEMORY_PLAN_H_
