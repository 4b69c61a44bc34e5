// What all users' sessions take of together, beside memory, and whether there
// is room for one more: whoever comes first cannot take all.

#ifndef DAEMON_CORE_SESSIONS_COMMON_LIMITS_H_
#define DAEMON_CORE_SESSIONS_COMMON_LIMITS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "daemon/core/accounts/tenant.h"
#include "daemon/core/models/model_registry.h"
#include "daemon/core/sessions/open_sessions.h"
#include "daemon/core/terms/options.h"
#include "daemon/core/terms/types.h"

namespace rknnd::core {

enum class CommonKind { kSessions, kContexts, kDescriptors, kMappings };

// Counts anew for each question. Thread: loop.
class CommonLimits {
 public:
  // All outlive it. `options` may change. Each buffer is mapped so often, at
  // most.
  CommonLimits(const LiveOptions& options, const OpenSessions& sessions,
               const ModelRegistry& models, uint64_t mappings_of_a_buffer)
      : options_(options),
        sessions_(sessions),
        models_(models),
        mappings_of_a_buffer_(mappings_of_a_buffer) {}

  // Whether one more session may be opened: operators may always look, and
  // local programs find room, whoever connects from other machines.
  [[nodiscard]] absl::Status CheckSession(const SessionPeer& peer) const;
  // Whether there may be one more of the kind for `tenant`, beside what all
  // have.
  [[nodiscard]] absl::Status Check(const Tenant& tenant, CommonKind kind) const;

 private:
  [[nodiscard]] absl::Status CheckRemoteSession() const;
  // At most.
  [[nodiscard]] uint64_t MappingsOf(const Session& session) const;

  const LiveOptions& options_;
  const OpenSessions& sessions_;
  const ModelRegistry& models_;
  const uint64_t mappings_of_a_buffer_;
};

}  // namespace rknnd::core

#endif  // DAEMON_CORE_SESSIONS_COMMON_LIMITS_H_
