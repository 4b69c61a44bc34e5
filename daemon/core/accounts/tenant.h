// Whose sessions have their limits together: those of a user, or of an
// allocation (a pod's). Made by the service when the first of them opens, held
// by each of them.

#ifndef DAEMON_CORE_ACCOUNTS_TENANT_H_
#define DAEMON_CORE_ACCOUNTS_TENANT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "daemon/core/accounts/holders.h"
#include "daemon/core/accounts/job_quota.h"
#include "daemon/core/accounts/ledger.h"
#include "daemon/core/terms/options.h"
#include "daemon/core/terms/types.h"

namespace rknnd::core {

// Limits, and the table of the configuration that has them: "limits.user",
// "limits.users", "limits.groups"; or "allocation".
struct TenantLimits {
  UserLimits limits;
  std::string table;
};

// What a session's peer may have: what its allocation gives, else what the
// configuration says of its user, else the largest of what it says of the
// user's groups (each limit by itself), else what it says of everybody.
TenantLimits ResolveLimits(const LiveOptions& options, const SessionPeer& peer);

// The larger of each two limits; 0, which is none, is the largest.
UserLimits LargerOf(const UserLimits& a, const UserLimits& b);

// One of UserLimits' and its key.
struct CountLimit {
  const char* key;
  uint32_t UserLimits::*limit;
};
inline constexpr CountLimit kContextLimit{"contexts", &UserLimits::contexts};
inline constexpr CountLimit kBufferLimit{"buffers", &UserLimits::buffers};
inline constexpr CountLimit kSessionLimit{"sessions", &UserLimits::sessions};

// Thread: loop, but for its quota and account.
class Tenant {
 public:
  // `name` in messages: "user 1000".
  Tenant(std::string name, std::shared_ptr<Account> account);
  Tenant(const Tenant&) = delete;
  Tenant& operator=(const Tenant&) = delete;

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const std::shared_ptr<Account>& account() const {
    return account_;
  }
  [[nodiscard]] JobQuota& quota() const { return *quota_; }
  [[nodiscard]] const UserLimits& limits() const { return limits_.limits; }

  // From now on. What is held beyond them stays.
  void SetLimits(TenantLimits limits);

  // One of `cores` (bits) as a mask: that whose turn it is...
  [[nodiscard]] uint32_t CoreInTurn(uint32_t cores) const;
  // ...and which has had it then.
  uint32_t TakeCoreInTurn(uint32_t cores);

  // Whether there may be one more when its sessions have these, or why not.
  [[nodiscard]] absl::Status Check(const CountLimit& limit,
                                   std::vector<Holding> holdings) const;

 private:
  const std::string name_;
  const std::shared_ptr<Account> account_;
  const std::shared_ptr<JobQuota> quota_;
  TenantLimits limits_;
  uint32_t last_core_ = 31;
};

}  // namespace rknnd::core

#endif  // DAEMON_CORE_ACCOUNTS_TENANT_H_
