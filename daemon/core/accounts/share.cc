// What a process may have of the cores, by the configuration. Called by the
// service on the loop; the orders by the scheduler.

#include "daemon/core/accounts/share.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/core/accounts/lanes.h"
#include "daemon/core/accounts/virtual_time.h"

namespace rknnd::core {

SharePolicy ResolvePolicy(const SchedulingOptions& options,
                          const SessionPeer& peer) {
  if (peer.allocation != nullptr) return peer.allocation->share;
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
    // 0 is all of them.
    best->cores =
        best->cores == 0 || policy.cores == 0 ? 0 : best->cores | policy.cores;
  }
  return best.value_or(options.share);
}

absl::Status CheckCores(const SchedulingOptions& options, uint32_t cores) {
  const uint32_t all = AllCores(cores);
  const auto check = [&](const std::string& who, const SharePolicy& policy) {
    if (policy.cores == 0 || (policy.cores & all) != 0) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat(who,
                     ": 'cores' names none of those that this device has, "
                     "which are 0 to ",
                     cores - 1));
  };
  absl::Status status = check("limits.user", options.share);
  for (const auto& [uid, policy] : options.users) {
    status.Update(check(absl::StrCat("limits.users, user ", uid), policy));
  }
  for (const auto& [gid, policy] : options.groups) {
    status.Update(check(absl::StrCat("limits.groups, group ", gid), policy));
  }
  return status;
}

Priority UnderCeiling(Priority asked, Priority ceiling) {
  return std::max(asked, ceiling);
}

bool EarlierLine::operator()(const Line* a, const Line* b) const {
  const Flow& one = *a->flow;
  const Flow& other = *b->flow;
  if (one.time != other.time) return IsEarlier(one.time, other.time);
  return one.order < other.order;
}

void Share::SetPolicy(const SharePolicy& policy) {
  policy_ = policy;
  for (Flow& flow : flows) flow.weight.Set(std::max(1U, policy.weight));
}

namespace {

// Of a user's processes that have gone; those of earlier times owe less.
constexpr size_t kMostLeft = 64;

bool EarlierTime(uint64_t a, uint64_t b) { return IsEarlier(a, b); }

// The latest, which is not there any more then.
uint64_t TakeLatest(std::vector<uint64_t>& left) {
  const auto latest = std::max_element(left.begin(), left.end(), EarlierTime);
  const uint64_t time = *latest;
  left.erase(latest);
  return time;
}

}  // namespace

Share::~Share() {
  if (group_ == nullptr) return;
  base::MutexLock lock(group_->mutex);
  for (size_t p = 0; p < flows.size(); ++p) {
    if (flows[p].time == 0) continue;  // it had nothing
    std::vector<uint64_t>& left = group_->left[p];
    left.push_back(flows[p].time);
    if (left.size() <= kMostLeft) continue;
    left.erase(std::min_element(left.begin(), left.end(), EarlierTime));
  }
}

Share::Share(const SharePolicy& policy, uint32_t cores,
             std::shared_ptr<ShareGroup> group)
    : policy_(policy), group_(std::move(group)) {
  for (size_t p = 0; p < flows.size(); ++p) {
    Flow& flow = flows[p];
    flow.weight.Set(std::max(1U, policy.weight));
    if (group_ != nullptr) {
      flow.sharers = &group_->busy[p];
      flow.weight.set_sharers(flow.sharers);
      base::MutexLock lock(group_->mutex);
      if (std::vector<uint64_t>& left = group_->left[p]; !left.empty()) {
        flow.time = TakeLatest(left);
      }
    }
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
