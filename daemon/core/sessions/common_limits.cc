// Counts what all sessions have of what they take of together.

#include "daemon/core/sessions/common_limits.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/posix/mapping.h"
#include "daemon/core/accounts/common_room.h"
#include "daemon/core/accounts/holders.h"
#include "daemon/core/sessions/session.h"

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

absl::Status CommonLimits::CheckSession(const SessionPeer& peer) const {
  const size_t more = peer.admin && peer.address.empty() ? kForOperators : 0;
  if (sessions_.size() < options_.sessions + more) {
    return peer.address.empty() ? absl::OkStatus() : CheckRemoteSession();
  }
  std::map<std::string, uint64_t> by_tenant;
  for (const auto& [id, session] : sessions_) {
    ++by_tenant[session->tenant()->name()];
  }
  std::vector<Holding> holdings;
  for (const auto& [name, count] : by_tenant) holdings.push_back({name, count});
  return absl::ResourceExhaustedError(absl::StrCat(
      "limit 'sessions' is ", options_.sessions,
      ", all in use; the largest holders: ", NameLargest(std::move(holdings)),
      ". 'rknnctl sessions' shows all of them"));
}

absl::Status CommonLimits::CheckRemoteSession() const {
  const size_t most_sessions = options_.sessions;
  const size_t most = std::max<size_t>(1, most_sessions - most_sessions / 4);
  const auto remote = static_cast<size_t>(std::count_if(
      sessions_.begin(), sessions_.end(),
      [](const auto& one) { return !one.second->peer().address.empty(); }));
  if (remote < most) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("of the ", most_sessions, " sessions (limit 'sessions') ",
                   most, " may be of other machines, all in use"));
}

absl::Status CommonLimits::Check(const Tenant& tenant, CommonKind kind) const {
  CommonRoom room{0, options_.kept_free};
  const char* what = "sessions";
  switch (kind) {
    case CommonKind::kSessions:
      room.whole = options_.sessions;
      break;
    case CommonKind::kContexts:
      what = "contexts";
      room.whole = kAllContexts * options_.limits.contexts;
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
  for (const auto& [id, session] : sessions_) {
    uint64_t amount = 1;
    if (kind == CommonKind::kContexts) amount = session->contexts().taken();
    if (kind == CommonKind::kDescriptors) amount = session->descriptors_taken();
    if (kind == CommonKind::kMappings) amount = MappingsOf(*session);
    all += amount;
    if (session->tenant().get() == &tenant) own += amount;
  }
  uint64_t more = 1;
  if (kind == CommonKind::kMappings) {
    all += kMappingsOfAModel * models_.count();
    own += kMappingsOfAModel * models_.LoadedBy(tenant.name());
    // Also what is nobody's, as internal memory.
    all = std::max(all, base::Mapping::Live());
    more = mappings_of_a_buffer_;
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

uint64_t CommonLimits::MappingsOf(const Session& session) const {
  // Its ring, files of a model that is loaded for it, a dump.
  constexpr uint64_t kOfASession = 4;
  // Buffers of other machines are copied to and from.
  const uint64_t copied = session.peer().address.empty() ? 0 : 1;
  return kOfASession +
         (mappings_of_a_buffer_ + copied) * session.buffers_taken();
}

}  // namespace rknnd::core
