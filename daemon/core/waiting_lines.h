// The contexts whose oldest job may run, in the order of their turns. Used by
// the scheduler, under its lock.
//
//   class ── lane (core mask) ── lines, one a share, by its virtual time
//                                  └─ contexts, by the age of their oldest job
//
// and all lines once more by how long nobody of them was begun with. Putting in
// and taking out costs the logarithm of how many wait; those that do not wait
// cost nothing.

#ifndef DAEMON_CORE_WAITING_LINES_H_
#define DAEMON_CORE_WAITING_LINES_H_

#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "base/posix/clock.h"
#include "daemon/core/run_context.h"
#include "daemon/core/share.h"
#include "daemon/core/types.h"

namespace rknnd::core {

// Of virtual times, which wrap; all that are compared lie close together.
inline bool IsEarlier(uint64_t a, uint64_t b) {
  return static_cast<int64_t>(a - b) < 0;
}
inline uint64_t Later(uint64_t a, uint64_t b) {
  return IsEarlier(a, b) ? b : a;
}

// What so much NPU time adds to the virtual time of a flow. Days of all cores,
// at the least part of the least weight, are within the half of the range that
// would matter.
inline uint64_t Virtual(base::Nanoseconds time, uint32_t weight) {
  return static_cast<uint64_t>(time) * 16 * FlowWeight::kScale / weight;
}

// The core masks there are: each core, any core, gangs of the first two cores
// and more.
class Lanes {
 public:
  explicit Lanes(uint32_t cores) : cores_(cores) {}
  [[nodiscard]] uint32_t count() const { return cores_ + 1 + (cores_ - 1); }
  [[nodiscard]] uint32_t Of(const CoreChoice& choice) const {
    if (choice.gang) {
      return cores_ - 1 + static_cast<uint32_t>(std::popcount(choice.cores));
    }
    return std::has_single_bit(choice.cores)
               ? static_cast<uint32_t>(std::countr_zero(choice.cores))
               : any();
  }
  [[nodiscard]] uint32_t any() const { return cores_; }
  [[nodiscard]] uint32_t first_gang() const { return cores_ + 1; }
  [[nodiscard]] bool IsGang(uint32_t lane) const { return lane > cores_; }
  // The cores that a job of `lane` may run on, or takes.
  [[nodiscard]] uint32_t MaskOf(uint32_t lane) const {
    if (lane < cores_) return uint32_t{1} << lane;
    const uint32_t cores = lane == cores_ ? cores_ : lane - cores_ + 1;
    return static_cast<uint32_t>((uint64_t{1} << cores) - 1);
  }

 private:
  uint32_t cores_;
};

// Thread: any, under the scheduler's lock; allocates nothing once made.
class WaitingLines {
 public:
  // Contexts without a share wait in `nobody`'s.
  WaitingLines(uint32_t cores, Share* nobody);

  [[nodiscard]] const Lanes& lanes() const { return lanes_; }
  [[nodiscard]] Flow& FlowOf(const RunContext& context) const;
  [[nodiscard]] Line& LineOf(const RunContext& context) const;

  // `least`: what a share that has nothing in this line yet has had at least.
  void Insert(RunContext& context, uint64_t least, base::Nanoseconds now);
  void Remove(RunContext& context);
  // Adds to what `flow` has had, or takes from it.
  void Charge(Flow& flow, int64_t amount);
  // The line's oldest job was begun with; it is in no line any more.
  void NoteTurn(Line& line, base::Nanoseconds now);

  // By turn. Those of one class and lane.
  [[nodiscard]] const LineOrder& At(uint32_t priority, uint32_t lane) const {
    return orders_[priority][lane];
  }
  // Contexts in a lane, of all classes.
  [[nodiscard]] uint32_t count(uint32_t lane) const { return counts_[lane]; }
  // The line that waits longest; the rest by Line::next.
  [[nodiscard]] Line* longest_waiting() const { return first_; }

 private:
  void Append(Line& line);
  void Unlink(Line& line);

  const Lanes lanes_;
  Share* const nobody_;
  std::array<std::vector<LineOrder>, kPriorities> orders_;
  std::vector<uint32_t> counts_;
  uint64_t next_order_ = 0;
  Line* first_ = nullptr;
  Line* last_ = nullptr;
};

}  // namespace rknnd::core

#endif  // DAEMON_CORE_WAITING_LINES_H_
