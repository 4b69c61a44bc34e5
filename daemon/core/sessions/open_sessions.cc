// Looks through all open sessions: whose they are, and what they hold.

#include "daemon/core/sessions/open_sessions.h"

#include <utility>

#include "daemon/core/sessions/session.h"

namespace rknnd::core {

void OpenSessions::Add(std::shared_ptr<Session> session) {
  const SessionId id = session->id();
  sessions_[id] = std::move(session);
}

std::shared_ptr<Session> OpenSessions::Take(SessionId id) {
  const auto taken = sessions_.extract(id);
  return taken.empty() ? nullptr : taken.mapped();
}

Session* OpenSessions::Find(SessionId id) const {
  const auto found = sessions_.find(id);
  return found == sessions_.end() ? nullptr : found->second.get();
}

void OpenSessions::EndAll() {
  for (const auto& [id, session] : sessions_) session->End();
  sessions_.clear();
}

std::vector<const SessionPeer*> OpenSessions::PeersOf(
    const Tenant& tenant) const {
  std::vector<const SessionPeer*> peers;
  for (const auto& [id, session] : sessions_) {
    if (session->tenant().get() == &tenant) peers.push_back(&session->peer());
  }
  return peers;
}

absl::Status OpenSessions::CheckTenant(const Tenant& tenant,
                                       const CountLimit& limit) const {
  if (tenant.limits().*limit.limit == 0) return absl::OkStatus();
  std::vector<Holding> holdings;
  for (const auto& [id, session] : sessions_) {
    if (session->tenant().get() != &tenant) continue;
    // Of sessions, operators' do not count.
    uint64_t amount = session->peer().admin ? 0 : 1;
    if (limit.limit == kContextLimit.limit)
      amount = session->contexts().taken();
    if (limit.limit == kBufferLimit.limit) amount = session->buffers_taken();
    holdings.push_back({session->holder(), amount});
  }
  return tenant.Check(limit, std::move(holdings));
}

std::vector<Stream> OpenSessions::StreamsBut(SessionId session,
                                             uint32_t context) const {
  std::vector<Stream> streams;
  for (const auto& [id, other] : sessions_) {
    other->contexts().AppendStreams(id == session ? context : 0, &streams);
  }
  return streams;
}

}  // namespace rknnd::core
