// A process's account of NPU time: what its jobs wait and pay by, however many
// sessions and contexts it has. Made by the service when a session opens, held
// by sessions and contexts; everything in it but the policy belongs to the
// scheduler.

#ifndef DAEMON_CORE_SHARE_H_
#define DAEMON_CORE_SHARE_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

#include "absl/status/status.h"
#include "base/posix/clock.h"
#include "daemon/core/types.h"

namespace rknnd::core {

class RunContext;
class Share;
struct Flow;
struct Line;

// What a process may have: what its allocation gives, else what the
// configuration says of the user, else the best of what it says of the user's
// groups (the highest ceiling and the largest weight, of one group each, and
// the cores of all of them), else what it says of everybody.
SharePolicy ResolvePolicy(const SchedulingOptions& options,
                          const SessionPeer& peer);

// Whether everybody may have some core of a device with so many.
absl::Status CheckCores(const SchedulingOptions& options, uint32_t cores);

// What a context gets that asked for `asked`.
Priority UnderCeiling(Priority asked, Priority ceiling);

inline constexpr size_t kPriorities = 3;

// By the age of their oldest job.
struct OlderContext {
  bool operator()(const RunContext* a, const RunContext* b) const;
};
// By what their flows have had, least first.
struct EarlierLine {
  bool operator()(const Line* a, const Line* b) const;
};
// Their nodes are made with a context or share, so that none is made later.
using WaitingContexts = std::set<RunContext*, OlderContext>;
using LineOrder = std::set<Line*, EarlierLine>;

// One share's contexts of one class and one core mask whose oldest job may run.
struct Line {
  Flow* flow = nullptr;
  uint32_t lane = 0;  // the core mask (waiting_lines.h)
  WaitingContexts contexts;
  // Of one that has any: since when nobody of it was begun with.
  base::Nanoseconds since = 0;
  Line* previous = nullptr;  // by that
  Line* next = nullptr;
  LineOrder::node_type place;  // of one that has none
};

// One share's jobs of one class. Its virtual time is what they had of the NPU,
// over the share's weight; it wraps.
struct Flow {
  Flow() = default;
  Flow(const Flow&) = delete;
  Flow& operator=(const Flow&) = delete;

  std::atomic<uint32_t> weight = 1;  // changed by the loop at any time
  Priority priority = Priority::kMedium;
  uint64_t time = 0;
  uint64_t order = 0;  // who comes first among equals: unique
  std::vector<Line> lines;
};

// Thread: loop; flows under the scheduler's lock, by any.
class Share {
 public:
  // `cores` of the device: they say how many lanes there are.
  Share(const SharePolicy& policy, uint32_t cores);
  Share(const Share&) = delete;
  Share& operator=(const Share&) = delete;

  [[nodiscard]] const SharePolicy& policy() const { return policy_; }
  // From now on; a priority and cores are those of contexts made from now on.
  void SetPolicy(const SharePolicy& policy);

  std::array<Flow, kPriorities> flows;

 private:
  SharePolicy policy_;
};

}  // namespace rknnd::core

#endif  // DAEMON_CORE_SHARE_H_
