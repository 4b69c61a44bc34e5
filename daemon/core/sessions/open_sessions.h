// All sessions that are open, and what they have together. The service adds
// and takes out; sessions, limits and reports ask.

#ifndef DAEMON_CORE_SESSIONS_OPEN_SESSIONS_H_
#define DAEMON_CORE_SESSIONS_OPEN_SESSIONS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "daemon/core/accounts/tenant.h"
#include "daemon/core/scheduling/admission.h"
#include "daemon/core/terms/types.h"

namespace rknnd::core {

class Session;

// Thread: loop.
class OpenSessions {
 public:
  using ById = std::map<SessionId, std::shared_ptr<Session>>;

  void Add(std::shared_ptr<Session> session);
  // Null: there is none of this number.
  std::shared_ptr<Session> Take(SessionId id);
  [[nodiscard]] Session* Find(SessionId id) const;
  void EndAll();

  [[nodiscard]] size_t size() const { return sessions_.size(); }
  [[nodiscard]] ById::const_iterator begin() const { return sessions_.begin(); }
  [[nodiscard]] ById::const_iterator end() const { return sessions_.end(); }

  // Valid while these sessions are open.
  [[nodiscard]] std::vector<const SessionPeer*> PeersOf(
      const Tenant& tenant) const;
  // Whether the sessions of `tenant` together may have one more of what the
  // limit counts, or why not.
  [[nodiscard]] absl::Status CheckTenant(const Tenant& tenant,
                                         const CountLimit& limit) const;
  // All streams that room is kept for, but that of one context.
  [[nodiscard]] std::vector<Stream> StreamsBut(SessionId session,
                                               uint32_t context) const;

 private:
  ById sessions_;
};

}  // namespace rknnd::core

#endif  // DAEMON_CORE_SESSIONS_OPEN_SESSIONS_H_
