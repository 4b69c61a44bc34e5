// What a process may have of the cores, by the configuration. Called by the
// service on the loop; the orders by the scheduler.

#include "daemon/core/share.h"

#include <algorithm>
#include <optional>

#include "daemon/core/job.h"
#include "daemon/core/waiting_lines.h"

namespace rknnd::core {

SharePolicy ResolvePolicy(const SchedulingOptions& options,
                          const SessionPeer& peer) {
  const auto user = options.users.find(peer.uid);
  if (user != options.users.end()) return user->second;
  std::optional<SharePolicy> best;
  for (const uint32_t group : peer.groups) {
    const auto found = options.groups.find(group);
    if (found == options.groups.end()) continue;
    const SharePolicy& policy = found->second;
    if (!best.has_value()) best = policy;
    // HIGH is 0.
    best->ceiling = std::min(best->ceiling, policy.ceiling);
    best->weight = std::max(best->weight, policy.weight);
  }
  return best.value_or(options.share);
}

Priority UnderCeiling(Priority asked, Priority ceiling) {
  return std::max(asked, ceiling);
}

bool OlderContext::operator()(const RunContext* a, const RunContext* b) const {
  return a->queue.first->ticket < b->queue.first->ticket;
}

bool EarlierLine::operator()(const Line* a, const Line* b) const {
  const Flow& one = *a->flow;
  const Flow& other = *b->flow;
  if (one.time != other.time) return IsEarlier(one.time, other.time);
  return one.order < other.order;
}

Share::Share(const SharePolicy& policy, uint32_t cores) : policy_(policy) {
  for (size_t p = 0; p < flows.size(); ++p) {
    Flow& flow = flows[p];
    flow.weight = std::max(1U, policy.weight);
    flow.priority = static_cast<Priority>(p);
    flow.lines = std::vector<Line>(Lanes(cores).count());
    for (uint32_t lane = 0; lane < flow.lines.size(); ++lane) {
      Line& line = flow.lines[lane];
      line.flow = &flow;
      line.lane = lane;
      LineOrder maker;
      maker.insert(&line);
      line.place = maker.extract(maker.begin());
    }
  }
}

}  // namespace rknnd::core
