// The contexts whose oldest job may run, in the order of their turns. Used by
// the scheduler, under its lock.
//
//   class ── lane (core mask) ── lines, one a share, by its virtual time
//                                  └─ contexts, by the age of their oldest job
//
// and all lines once more by how long nobody of them was begun with. Putting in
// and taking out costs the logarithm of how many wait; those that do not wait
// cost nothing.

#ifndef DAEMON_CORE_SCHEDULING_WAITING_LINES_H_
#define DAEMON_CORE_SCHEDULING_WAITING_LINES_H_

#include <array>
#include <cstdint>
#include <vector>

#include "base/posix/clock.h"
#include "daemon/core/accounts/lanes.h"
#include "daemon/core/accounts/share.h"
#include "daemon/core/accounts/virtual_time.h"
#include "daemon/core/contexts/run_context.h"
#include "daemon/core/terms/types.h"

namespace rknnd::core {

// What so much NPU time adds to the virtual time of a flow. Days of all cores,
// at the least part of the least weight, are within the half of the range that
// would matter.
inline uint64_t Virtual(base::Nanoseconds time, uint32_t weight) {
  return static_cast<uint64_t>(time) * 16 * FlowWeight::kScale / weight;
}

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
  // The flow has one thing more, or less, that makes it one of its group's that
  // have jobs: a job that runs; a line that waits does so by itself.
  void Join(Flow& flow);
  void Leave(Flow& flow);
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

#endif  // DAEMON_CORE_SCHEDULING_WAITING_LINES_H_
