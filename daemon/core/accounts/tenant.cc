// What users and allocations may have. Called by the service and its sessions
// on the loop; whose session it is, the kernel or an operator said.

#include "daemon/core/accounts/tenant.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"

namespace rknnd::core {
namespace {

// 0 is no limit.
template <class Integer>
Integer Larger(Integer a, Integer b) {
  return a == 0 || b == 0 ? 0 : std::max(a, b);
}

}  // namespace

UserLimits LargerOf(const UserLimits& a, const UserLimits& b) {
  UserLimits larger;
  larger.memory = Larger(a.memory, b.memory);
  larger.contexts = Larger(a.contexts, b.contexts);
  larger.buffers = Larger(a.buffers, b.buffers);
  larger.sessions = Larger(a.sessions, b.sessions);
  larger.queue = Larger(a.queue, b.queue);
  return larger;
}

TenantLimits ResolveLimits(const LiveOptions& options,
                           const SessionPeer& peer) {
  if (peer.allocation != nullptr) {
    return {peer.allocation->limits, "allocation"};
  }
  const auto user = options.users.find(peer.uid);
  if (user != options.users.end()) return {user->second, "limits.users"};
  std::optional<UserLimits> best;
  for (const uint32_t group : peer.groups) {
    const auto found = options.groups.find(group);
    if (found == options.groups.end()) continue;
    best = best.has_value() ? LargerOf(*best, found->second) : found->second;
  }
  if (best.has_value()) return {*best, "limits.groups"};
  return {options.user_limits, "limits.user"};
}

Tenant::Tenant(std::string name, std::shared_ptr<Account> account)
    : name_(std::move(name)),
      account_(std::move(account)),
      quota_(JobQuota::Create(name_)) {}

void Tenant::SetLimits(TenantLimits limits) {
  limits_ = std::move(limits);
  const UserLimits& all = limits_.limits;
  account_->SetLimit(all.memory == 0 ? kNoLimit : all.memory,
                     absl::StrCat(limits_.table, ".memory"));
  quota_->SetLimit(all.queue, absl::StrCat(limits_.table, ".queue"));
}

uint32_t Tenant::CoreInTurn(uint32_t cores) const {
  // Those above the last one, else from the beginning.
  const uint32_t above =
      cores & ~static_cast<uint32_t>((uint64_t{2} << last_core_) - 1);
  return uint32_t{1} << std::countr_zero(above != 0 ? above : cores);
}

uint32_t Tenant::TakeCoreInTurn(uint32_t cores) {
  const uint32_t mask = CoreInTurn(cores);
  last_core_ = static_cast<uint32_t>(std::countr_zero(mask));
  return mask;
}

absl::Status Tenant::Check(const CountLimit& limit,
                           std::vector<Holding> holdings) const {
  const uint32_t most = limits_.limits.*limit.limit;
  if (most == 0) return absl::OkStatus();
  uint64_t holds = 0;
  for (const Holding& one : holdings) holds += one.amount;
  if (holds < most) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat(name_, " holds ", holds, " ", limit.key, ", its limit '",
                   limits_.table, ".", limit.key, "' is ", most,
                   "; the largest holders: ", NameLargest(std::move(holdings)),
                   ". End what is not needed, or raise the limit"));
}

}  // namespace rknnd::core
