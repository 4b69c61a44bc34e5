// Who may hold what: sessions, users' and allocations' limits, processes'
// shares of the cores, and what a reload changes of it. Called by service.cc
// and the transports on the loop; whose session it is, the kernel or an
// operator said.

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/posix/mapping.h"
#include "base/status/status.h"
#include "daemon/core/accounts/common_room.h"
#include "daemon/core/service.h"
#include "daemon/core/service_impl.h"

namespace rknnd::core {
namespace {

// Sessions beyond the limit that operators of this machine may have: whoever
// has filled the house, somebody can look who it is.
constexpr size_t kForOperators = 16;

// Contexts of all together, in what one session may have: each costs some KiB.
constexpr uint64_t kAllContexts = 16;

// Weights, and code of kernels, of which what lies side by side is one.
constexpr uint64_t kMappingsOfAModel = 4;

}  // namespace

absl::Status Service::Impl::CheckSessions(const SessionPeer& peer) const {
  const size_t more = peer.admin && peer.address.empty() ? kForOperators : 0;
  if (sessions.size() < options_.sessions + more) {
    return peer.address.empty() ? absl::OkStatus() : CheckRemoteSessions();
  }
  std::map<std::string, uint64_t> by_tenant;
  for (const auto& [id, session] : sessions) {
    ++by_tenant[session->tenant()->name()];
  }
  std::vector<Holding> holdings;
  for (const auto& [name, count] : by_tenant) holdings.push_back({name, count});
  return absl::ResourceExhaustedError(absl::StrCat(
      "limit 'sessions' is ", options_.sessions,
      ", all in use; the largest holders: ", NameLargest(std::move(holdings)),
      ". 'rknnctl sessions' shows all of them"));
}

absl::Status Service::Impl::CheckRemoteSessions() const {
  const size_t most_sessions = options_.sessions;
  const size_t most = std::max<size_t>(1, most_sessions - most_sessions / 4);
  const auto remote = static_cast<size_t>(std::count_if(
      sessions.begin(), sessions.end(),
      [](const auto& one) { return !one.second->peer().address.empty(); }));
  if (remote < most) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("of the ", most_sessions, " sessions (limit 'sessions') ",
                   most, " may be of other machines, all in use"));
}

std::shared_ptr<Share> Service::Impl::ShareOf(const SessionPeer& peer,
                                              const Tenant& tenant) {
  const auto expired = [](const auto& one) { return one.second.expired(); };
  std::erase_if(shares_, expired);
  std::erase_if(share_groups_, expired);
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
  share = std::make_shared<Share>(policy, parts->device->info().cores,
                                  std::move(group));
  known = share;
  return share;
}

std::shared_ptr<Tenant> Service::Impl::TenantOf(const SessionPeer& peer) {
  const auto expired = [](const auto& one) { return one.second.expired(); };
  std::erase_if(tenants_, expired);
  std::erase_if(accounts_, expired);
  const std::string name =
      peer.allocation == nullptr
          ? absl::StrCat("user ", peer.uid)
          : absl::StrCat("allocation '", peer.allocation->name, "'");
  std::weak_ptr<Tenant>& known = tenants_[name];
  std::shared_ptr<Tenant> tenant = known.lock();
  if (tenant == nullptr) {
    std::weak_ptr<Account>& paid = accounts_[name];
    std::shared_ptr<Account> account = paid.lock();
    if (account == nullptr) account = parts->ledger->Open(name);
    paid = account;
    tenant = std::make_shared<Tenant>(name, std::move(account));
    known = tenant;
  }
  SetLimitsOf(*tenant, &peer);
  return tenant;
}

void Service::Impl::SetLimitsOf(Tenant& tenant, const SessionPeer* peer) const {
  std::optional<TenantLimits> limits;
  const auto add = [&](const SessionPeer& one) {
    TenantLimits more = ResolveLimits(options_, one);
    if (!limits.has_value()) {
      limits = std::move(more);
    } else if (more.limits != limits->limits) {
      // Processes of one user with different groups.
      limits->limits = LargerOf(limits->limits, more.limits);
    }
  };
  if (peer != nullptr) add(*peer);
  for (const auto& [id, session] : sessions) {
    if (session->tenant().get() == &tenant) add(session->peer());
  }
  if (limits.has_value()) tenant.SetLimits(*std::move(limits));
}

std::vector<Holding> Service::Impl::Count(const Tenant& tenant,
                                          const CountLimit& limit) const {
  std::vector<Holding> holdings;
  for (const auto& [id, session] : sessions) {
    if (session->tenant().get() != &tenant) continue;
    // Of sessions, operators' do not count.
    uint64_t amount = session->peer().admin ? 0 : 1;
    if (limit.limit == kContextLimit.limit) amount = session->contexts_taken();
    if (limit.limit == kBufferLimit.limit) amount = session->buffers_taken();
    holdings.push_back({session->holder(), amount});
  }
  return holdings;
}

absl::Status Service::Impl::CheckCommon(const Tenant& tenant,
                                        CommonKind kind) const {
  CommonRoom room{0, options_.kept_free};
  const char* what = "sessions";
  switch (kind) {
    case CommonKind::kSessions:
      room.whole = options_.sessions;
      break;
    case CommonKind::kContexts:
      what = "contexts";
      room.whole = kAllContexts * parts->limits.contexts;
      break;
    case CommonKind::kDescriptors:
      what = "open files";
      // The rest is for the daemon's own, and what is on its way.
      room.whole = options_.descriptors - options_.descriptors / 4;
      if (room.whole == 0) return absl::OkStatus();
      break;
    case CommonKind::kMappings:
      what = "mappings";
      // The rest is for what libraries map: code of kernels, stacks, heaps.
      room.whole = options_.mappings - options_.mappings / 4;
      if (room.whole == 0) return absl::OkStatus();
      break;
  }
  uint64_t all = 0;
  uint64_t own = 0;
  for (const auto& [id, session] : sessions) {
    uint64_t amount = 1;
    if (kind == CommonKind::kContexts) amount = session->contexts_taken();
    if (kind == CommonKind::kDescriptors) amount = session->descriptors_taken();
    if (kind == CommonKind::kMappings) amount = MappingsOf(*session);
    all += amount;
    if (session->tenant().get() == &tenant) own += amount;
  }
  uint64_t more = 1;
  if (kind == CommonKind::kMappings) {
    all += kMappingsOfAModel * parts->models->count();
    own += kMappingsOfAModel * parts->models->LoadedBy(tenant.name());
    // Also what is nobody's, as internal memory.
    all = std::max(all, base::Mapping::Live());
    more = MappingsOfABuffer();
  }
  if (room.Allows(all, own, more)) return absl::OkStatus();
  if (all >= room.whole || more > room.whole - all) {
    return absl::ResourceExhaustedError(
        absl::StrCat("all users together have ", all, " ", what, ", of ",
                     room.whole, " that are possible; ", tenant.name(), " has ",
                     own, " of them. End what is not needed"));
  }
  return absl::ResourceExhaustedError(room.Refusal(tenant.name(), own, what));
}

uint64_t Service::Impl::MappingsOfABuffer() const {
  // As a device without coherence sees it: its copy, what was last the same,
  // and the memory once more (driver/faults/incoherent_memory.h).
  return incoherent || faults != nullptr ? 5 : 1;
}

uint64_t Service::Impl::MappingsOf(const SessionImpl& session) const {
  // Its ring, files of a model that is loaded for it, a dump.
  constexpr uint64_t kOfASession = 4;
  // Buffers of other machines are copied to and from.
  const uint64_t copied = session.peer().address.empty() ? 0 : 1;
  return kOfASession + (MappingsOfABuffer() + copied) * session.buffers_taken();
}

uint64_t Service::Impl::AddressSpace() const {
  const uint64_t mapped = parts->device->info().address_space;
  return options_.address_space == 0 ? mapped
                                     : std::min(options_.address_space, mapped);
}

absl::Status Service::Impl::Reconfigure(const LiveOptions& options) {
  RKNND_RETURN_IF_ERROR(
      CheckCores(options.scheduling, parts->device->info().cores));
  const uint32_t jobs_per_context = parts->limits.jobs_per_context;
  options_ = options;
  parts->limits = options.limits;
  parts->limits.jobs_per_context = jobs_per_context;
  parts->ledger->SetBudget(AddressSpace(), options_.kept_free);
  for (const auto& [id, session] : sessions) {
    session->TakeLimits();
    SetLimitsOf(*session->tenant(), nullptr);
    session->share().SetPolicy(
        ResolvePolicy(options_.scheduling, session->peer()));
  }
  ModelRegistry& models = *parts->models;
  models.set_grace(options.model_grace);
  models.SetCacheLimit(options.cache_limit);
  models.SetPreloaded(options.preload, options.limits.model_bytes);
  return absl::OkStatus();
}

absl::Status Service::Reconfigure(const LiveOptions& options) {
  return impl_->Reconfigure(options);
}

const SessionLimits& Service::limits() const { return impl_->parts->limits; }

}  // namespace rknnd::core
