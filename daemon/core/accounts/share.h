// A process's account of NPU time: what its jobs wait and pay by, however many
// sessions and contexts it has. A user's processes divide the user's weight
// among those of them that have jobs, so that forty of them weigh as much as
// another user's one. Made by the service when a session opens, held by
// sessions and contexts; everything in it but the policy belongs to the
// scheduler.

#ifndef DAEMON_CORE_ACCOUNTS_SHARE_H_
#define DAEMON_CORE_ACCOUNTS_SHARE_H_

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "base/posix/clock.h"
#include "base/posix/mutex.h"
#include "daemon/core/terms/types.h"

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

// What the shares of a user's processes have in common; held by each of them.
struct ShareGroup {
  // Counts those there are, so that each knows whether it is alone; without it
  // a group believes that there are others.
  using Count = std::shared_ptr<std::atomic<uint32_t>>;

  explicit ShareGroup(Count count = nullptr) : count_(std::move(count)) {
    if (count_ != nullptr) ++*count_;
  }
  ~ShareGroup() {
    if (count_ != nullptr) --*count_;
  }
  ShareGroup(const ShareGroup&) = delete;
  ShareGroup& operator=(const ShareGroup&) = delete;

  [[nodiscard]] bool is_alone() const {
    return count_ != nullptr && count_->load(std::memory_order_relaxed) < 2;
  }

  // By class: how many of them have jobs, waiting or running. Under the
  // scheduler's lock.
  std::array<uint32_t, kPriorities> busy{};

  // Of CoreBudget, under the scheduler's lock: what the jobs that run are
  // expected to take of all cores together, and the contexts that wait for
  // that.
  base::Nanoseconds running = 0;
  RunContext* first_held = nullptr;
  RunContext* last_held = nullptr;

  // The virtual times of those that have gone. A new process goes on from the
  // latest of them: else a user whose processes end with their first job would
  // never have had any.
  base::Mutex mutex;
  std::array<std::vector<uint64_t>, kPriorities> left RKNND_GUARDED_BY(mutex);

 private:
  const Count count_;
};

// What a flow's NPU time is divided by.
class FlowWeight {
 public:
  // Of a whole weight: a fraction of one still counts as such.
  static constexpr uint32_t kScale = 1024;

  // From now on; by the loop at any time.
  void Set(uint32_t weight) { weight_ = weight; }
  [[nodiscard]] uint32_t whole() const { return weight_; }
  // The scheduler's: one of so many of its group that have jobs.
  void set_sharers(const uint32_t* sharers) { sharers_ = sharers; }
  void set_counted(bool counted) { counted_ = counted; }
  // This flow counts as one that has jobs: it is about to pay for one.
  operator uint32_t() const {  // NOLINT(google-explicit-constructor)
    const uint32_t others =
        sharers_ == nullptr ? 0 : *sharers_ - (counted_ ? 1 : 0);
    return std::max(1U, weight_ * kScale / (others + 1));
  }

 private:
  std::atomic<uint32_t> weight_ = 1;
  const uint32_t* sharers_ = nullptr;
  bool counted_ = false;  // in *sharers_
};

// One share's jobs of one class. Its virtual time is what they had of the NPU,
// over the share's part of the user's weight; it wraps.
struct Flow {
  Flow() = default;
  Flow(const Flow&) = delete;
  Flow& operator=(const Flow&) = delete;

  FlowWeight weight;
  Priority priority = Priority::kMedium;
  uint64_t time = 0;
  uint64_t order = 0;           // who comes first among equals: unique
  uint32_t waiting = 0;         // of its lines
  uint32_t busy = 0;            // these, and its jobs that run
  uint32_t* sharers = nullptr;  // its group's, or null
  std::vector<Line> lines;
};

// Thread: loop; flows under the scheduler's lock, by any.
class Share {
 public:
  // `cores` of the device: they say how many lanes there are.
  // `group`: the user's; null: it is alone.
  Share(const SharePolicy& policy, uint32_t cores,
        std::shared_ptr<ShareGroup> group = nullptr);
  ~Share();
  Share(const Share&) = delete;
  Share& operator=(const Share&) = delete;

  [[nodiscard]] const SharePolicy& policy() const { return policy_; }
  // Null: it is alone.
  [[nodiscard]] ShareGroup* group() const { return group_.get(); }
  // From now on; a priority and cores are those of contexts made from now on.
  void SetPolicy(const SharePolicy& policy);

  std::array<Flow, kPriorities> flows;

 private:
  SharePolicy policy_;
  const std::shared_ptr<ShareGroup> group_;
};

}  // namespace rknnd::core

#endif  // DAEMON_CORE_ACCOUNTS_SHARE_H_
