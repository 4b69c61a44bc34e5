// Whose turn it is: Scheduler's decisions.

#include <algorithm>
#include <bit>

#include "base/posix/hot_path.h"
#include "daemon/core/scheduling/scheduler.h"

namespace rknnd::core {
namespace {

// So many lines of a lane, and contexts of a line, are looked at for a job that
// is short enough. Beyond it a core may wait for a gang though one was there.
constexpr size_t kLines = 32;
constexpr size_t kContexts = 8;
// So many that wait long are looked at; the longest waiting come first.
constexpr size_t kDueLooks = 64;

size_t ClassOf(const RunContext& context) {
  return static_cast<size_t>(context.traits().priority);
}

Line* FirstOf(const LineOrder& order) {
  return order.empty() ? nullptr : *order.begin();
}

RKNND_HOT_PATH Line* Earlier(Line* a, Line* b) {
  if (a == nullptr || b == nullptr) return a == nullptr ? b : a;
  if (a->flow == b->flow) {
    return OlderContext()(*b->contexts.begin(), *a->contexts.begin()) ? b : a;
  }
  return EarlierLine()(b, a) ? b : a;
}

}  // namespace

RKNND_HOT_PATH Scheduler::Choice Scheduler::Find(base::Nanoseconds now) {
  const uint32_t available = free_ & ~lent_;
  // The usual case at a job's end.
  if (available == 0 || counts_.queued == 0) return {};
  for (;;) {
    const base::Nanoseconds longest = std::max(longest_, longest_before_);
    Line* due = due_last_ ? nullptr : FindDue(now, available, longest);
    if (due != nullptr && lines_.lanes().IsGang(due->lane)) {
      if (!gathering_due_) {
        gathering_ = *due->contexts.begin();
        gathering_due_ = true;
      }
      due = nullptr;
    }
    // The gang first: while it waits for memory it keeps no core.
    RunContext* const gang = FirstGang(now);
    if (gang != nullptr && !MayStart(*gang)) continue;
    Choice choice = Choose(now, available, gang);
    // Longer than was counted with.
    if (choice.context != nullptr && due == nullptr &&
        choice.context->queue.first->expected > longest) {
      due = FindDue(now, available, choice.context->queue.first->expected);
      if (due != nullptr && lines_.lanes().IsGang(due->lane)) due = nullptr;
    }
    if (due != nullptr) {
      uint32_t cores = available & lines_.lanes().MaskOf(due->lane);
      if (gathering_due_) cores &= ~gang->queue.first->cores.cores;
      if (cores != 0) choice = {*due->contexts.begin(), cores, false, true};
    }
    if (choice.context == nullptr || MayStart(*choice.context)) return choice;
  }
}

RKNND_HOT_PATH bool Scheduler::MayStart(RunContext& context) {
  if (!turns_.MayStart(context)) {
    RemoveReady(context);
    turns_.Park(context);
    return false;
  }
  if (!core_budget_.MayStart(context)) {
    RemoveReady(context);
    CoreBudget::Hold(context);
    return false;
  }
  return true;
}

RKNND_HOT_PATH Scheduler::Choice Scheduler::Choose(base::Nanoseconds now,
                                                   uint32_t available,
                                                   RunContext* gang) {
  RunContext* const single = FirstSingle(available);
  const Choice first{single, available, true, false};
  if (gang == nullptr) return first;
  const uint32_t mask = gang->queue.first->cores.cores;
  const bool gathers = gang == gathering_;
  const bool due = gathers && gathering_due_;
  const bool higher =
      !due && single != nullptr && ClassOf(*single) < ClassOf(*gang);
  if ((mask & ~available) == 0) {
    const bool precedes = single == nullptr || Precedes(*gang, *single);
    if (!higher && (gathers || precedes || MayLead(*gang, *single))) {
      return {gang, mask, precedes, due};
    }
    return first;
  }
  if ((mask & available) == 0) return first;
  if (!gathers) {
    const RunContext* rival = FirstSingle(available & mask);
    if (rival != nullptr && !Precedes(*gang, *rival)) return first;
    gathering_ = gang;
    gathering_due_ = false;
  }
  if (higher) return first;
  RunContext* const beside = FirstSingle(available & ~mask);
  RunContext* const fits =
      FirstThatFits(available & mask, UntilFree(mask, now));
  if (beside != nullptr && (fits == nullptr || !Precedes(*fits, *beside))) {
    return {beside, available & ~mask, true, false};
  }
  if (fits == nullptr) return {};
  const CoreChoice& takes = fits->queue.first->cores;
  return {fits, takes.gang ? takes.cores : available & mask, false, false};
}

RKNND_HOT_PATH RunContext* Scheduler::FirstSingle(uint32_t cores) const {
  if (cores == 0) return nullptr;
  for (uint32_t priority = 0; priority < kPriorities; ++priority) {
    Line* first = FirstOf(lines_.At(priority, lines_.lanes().any()));
    for (uint32_t core = 0; core < cores_; ++core) {
      if ((cores >> core & 1) == 0) continue;
      first = Earlier(first, FirstOf(lines_.At(priority, core)));
    }
    if (first != nullptr) return *first->contexts.begin();
  }
  return nullptr;
}

RunContext* Scheduler::FirstThatFits(uint32_t cores,
                                     base::Nanoseconds room) const {
  if (cores == 0) return nullptr;
  const Lanes& lanes = lines_.lanes();
  for (uint32_t priority = 0; priority < kPriorities; ++priority) {
    RunContext* first = nullptr;
    const auto consider =
        [&](const LineOrder& order) RKNND_NO_THREAD_SAFETY_ANALYSIS {
          size_t lines = 0;
          for (auto line = order.begin(); line != order.end() && lines < kLines;
               ++line, ++lines) {
            size_t contexts = 0;
            for (RunContext* context : (*line)->contexts) {
              if (++contexts > kContexts) break;
              if (context->queue.first->expected > room) continue;
              if (first == nullptr || Precedes(*context, *first))
                first = context;
              return;
            }
          }
        };
    for (uint32_t lane = 0; lane < lanes.count(); ++lane) {
      const uint32_t mask = lanes.MaskOf(lane);
      if (lanes.IsGang(lane) ? (mask & ~cores) == 0 : (mask & cores) != 0) {
        consider(lines_.At(priority, lane));
      }
    }
    if (first != nullptr) return first;
  }
  return nullptr;
}

RKNND_HOT_PATH RunContext* Scheduler::FirstGang(base::Nanoseconds now) {
  if (gathering_ != nullptr &&
      Lacks(gathering_->queue.first->cores.cores, now)) {
    gathering_ = nullptr;
    gathering_due_ = false;
  }
  if (gathering_due_) return gathering_;
  const Lanes& lanes = lines_.lanes();
  for (uint32_t priority = 0; priority < kPriorities; ++priority) {
    if (gathering_ != nullptr && ClassOf(*gathering_) == priority) break;
    Line* first = nullptr;
    for (uint32_t lane = lanes.first_gang(); lane < lanes.count(); ++lane) {
      Line* const line = FirstOf(lines_.At(priority, lane));
      if (line == nullptr || Lacks(lanes.MaskOf(lane), now)) continue;
      first = Earlier(first, line);
    }
    if (first == nullptr) continue;
    // Of a higher class than the one that gathers.
    gathering_ = nullptr;
    return *first->contexts.begin();
  }
  return gathering_;
}

bool Scheduler::Precedes(const RunContext& a, const RunContext& b) const {
  if (ClassOf(a) != ClassOf(b)) return ClassOf(a) < ClassOf(b);
  const Line& one = lines_.LineOf(a);
  const Line& other = lines_.LineOf(b);
  return one.flow == other.flow ? OlderContext()(&a, &b)
                                : EarlierLine()(&one, &other);
}

bool Scheduler::MayLead(const RunContext& gang,
                        const RunContext& single) const {
  if (ClassOf(gang) != ClassOf(single)) return false;
  const Flow& flow = lines_.FlowOf(gang);
  return !IsEarlier(
      lines_.FlowOf(single).time + Virtual(kGangLead, flow.weight), flow.time);
}

RKNND_HOT_PATH Line* Scheduler::FindDue(base::Nanoseconds now,
                                        uint32_t available,
                                        base::Nanoseconds longest) const {
  const Lanes& lanes = lines_.lanes();
  // Before a line's turn comes, with those who wait longer: what runs now, what
  // comes in between in the common order, and for a gang its last core.
  base::Nanoseconds runs = 0;
  Line* first = nullptr;
  size_t looks = 0;
  for (Line* line = lines_.longest_waiting();
       line != nullptr && looks < kDueLooks; line = line->next, ++looks) {
    const base::Nanoseconds waited = now - line->since;
    if (waited < bound_ / 2) return nullptr;
    const uint32_t mask = lanes.MaskOf(line->lane);
    const bool gang = lanes.IsGang(line->lane);
    if (gang && Lacks(mask, now)) continue;
    runs += gang ? 3 : 2;
    longest =
        std::max(longest, (*line->contexts.begin())->queue.first->expected);
    if ((mask & available) == 0) continue;
    if (first == nullptr) first = line;
    if (waited + std::min(runs * longest, bound_ / 2) >= bound_) return first;
  }
  return nullptr;
}

RKNND_HOT_PATH uint32_t Scheduler::ChooseCore(uint32_t cores) const {
  // Best one that no gang gathers and nobody insists on.
  uint32_t best = cores;
  const auto prefer = [&best](uint32_t better) {
    if ((best & better) != 0) best &= better;
  };
  if (gathering_ != nullptr) prefer(~gathering_->queue.first->cores.cores);
  const Lanes& lanes = lines_.lanes();
  for (uint32_t lane = lanes.count(); lane-- > 0;) {
    if (lane != lanes.any() && lines_.count(lane) != 0) {
      prefer(~lanes.MaskOf(lane));
    }
  }
  return static_cast<uint32_t>(std::countr_zero(best));
}

bool Scheduler::Lacks(uint32_t mask, base::Nanoseconds now) const {
  if ((mask & lent_) != 0) return true;
  for (uint32_t core = 0; core < cores_; ++core) {
    if (((mask & ~free_) >> core & 1) == 0) continue;
    const Running& run = running_[core];
    if (hang_ > 0 && now - run.since >= HangLimit(hang_, run.expected)) {
      return true;
    }
  }
  return false;
}

base::Nanoseconds Scheduler::UntilFree(uint32_t mask,
                                       base::Nanoseconds now) const {
  base::Nanoseconds longest = 0;
  for (uint32_t core = 0; core < cores_; ++core) {
    if (((mask & ~free_) >> core & 1) == 0) continue;
    const Running& run = running_[core];
    const base::Nanoseconds left = run.since + run.expected - now;
    // What takes longer than expected is expected to take as long again.
    longest = std::max(longest, left >= 0 ? left : -left);
  }
  return longest;
}

}  // namespace rknnd::core
