// Which sessions have their limits, and their share of the cores, together.

#include "daemon/core/accounts/tenants.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"

namespace rknnd::core {
namespace {

std::string NameOfUser(uint32_t uid) { return absl::StrCat("user ", uid); }

template <class Map>
void EraseExpired(Map* map) {
  std::erase_if(*map, [](const auto& one) { return one.second.expired(); });
}

}  // namespace

Tenants::Tenants(const LiveOptions& options, uint32_t cores,
                 std::shared_ptr<Ledger> ledger)
    : options_(options), cores_(cores), ledger_(std::move(ledger)) {}

std::shared_ptr<Tenant> Tenants::Of(const SessionPeer& peer) {
  EraseExpired(&tenants_);
  EraseExpired(&accounts_);
  const std::string name =
      peer.allocation == nullptr
          ? NameOfUser(peer.uid)
          : absl::StrCat("allocation '", peer.allocation->name, "'");
  std::weak_ptr<Tenant>& known = tenants_[name];
  std::shared_ptr<Tenant> tenant = known.lock();
  if (tenant == nullptr) {
    std::weak_ptr<Account>& paid = accounts_[name];
    std::shared_ptr<Account> account = paid.lock();
    if (account == nullptr) account = ledger_->Open(name);
    paid = account;
    tenant = std::make_shared<Tenant>(name, std::move(account));
    known = tenant;
  }
  return tenant;
}

void Tenants::SetLimits(Tenant& tenant,
                        const std::vector<const SessionPeer*>& peers) const {
  std::optional<TenantLimits> limits;
  for (const SessionPeer* peer : peers) {
    TenantLimits more = ResolveLimits(options_, *peer);
    if (!limits.has_value()) {
      limits = std::move(more);
    } else if (more.limits != limits->limits) {
      // Processes of one user with different groups.
      limits->limits = LargerOf(limits->limits, more.limits);
    }
  }
  if (limits.has_value()) tenant.SetLimits(*std::move(limits));
}

std::shared_ptr<Share> Tenants::ShareOf(const SessionPeer& peer,
                                        const Tenant& tenant) {
  EraseExpired(&shares_);
  EraseExpired(&share_groups_);
  const SharePolicy policy = ResolvePolicy(options_.scheduling, peer);
  // Processes of other namespaces cannot be told apart: each session counts.
  std::weak_ptr<Share> alone;
  std::weak_ptr<Share>& known =
      peer.allocation != nullptr
          ? shares_[{peer.allocation->name, 0, 0}]
          : (peer.pid == 0 ? alone : shares_[{"", peer.pid, peer.uid}]);
  std::shared_ptr<Share> share = known.lock();
  if (share != nullptr) {
    // A share socket of that name may give something else than the one before.
    if (!(share->policy() == policy)) share->SetPolicy(policy);
    return share;
  }
  std::weak_ptr<ShareGroup>& users = share_groups_[tenant.name()];
  std::shared_ptr<ShareGroup> group = users.lock();
  if (group == nullptr) {
    users = group = std::make_shared<ShareGroup>(share_group_count_);
  }
  share = std::make_shared<Share>(policy, cores_, std::move(group));
  known = share;
  return share;
}

std::shared_ptr<const Tenant> Tenants::FindUser(uint32_t uid) const {
  const auto known = tenants_.find(NameOfUser(uid));
  return known == tenants_.end() ? nullptr : known->second.lock();
}

}  // namespace rknnd::core
