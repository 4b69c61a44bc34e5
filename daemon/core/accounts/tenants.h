// Whose limits and whose share of the cores a new session has: its tenant, for
// all sessions of a user or an allocation, and its share, for all of a process.
// Who a session's peer is, the kernel or an operator said.

#ifndef DAEMON_CORE_ACCOUNTS_TENANTS_H_
#define DAEMON_CORE_ACCOUNTS_TENANTS_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "daemon/core/accounts/ledger.h"
#include "daemon/core/accounts/share.h"
#include "daemon/core/accounts/tenant.h"
#include "daemon/core/terms/options.h"
#include "daemon/core/terms/types.h"

namespace rknnd::core {

// Tenants and shares are their sessions'; they are found again here as long as
// there are any of these. Thread: loop.
class Tenants {
 public:
  // `options` outlives it, and may change.
  Tenants(const LiveOptions& options, uint32_t cores,
          std::shared_ptr<Ledger> ledger);

  // That of `peer`, with the limits it had.
  std::shared_ptr<Tenant> Of(const SessionPeer& peer);
  // Its limits are the largest that one of these peers has by itself.
  void SetLimits(Tenant& tenant,
                 const std::vector<const SessionPeer*>& peers) const;
  // One for all sessions of a process, or of an allocation. A number that is
  // used again, by another user's, is another process.
  std::shared_ptr<Share> ShareOf(const SessionPeer& peer, const Tenant& tenant);
  // Null: no session of this user is there.
  [[nodiscard]] std::shared_ptr<const Tenant> FindUser(uint32_t uid) const;

 private:
  struct ShareKey {
    std::string allocation;  // or empty
    int32_t pid;
    uint32_t uid;
    friend auto operator<=>(const ShareKey&, const ShareKey&) = default;
  };

  const LiveOptions& options_;
  const uint32_t cores_;
  const std::shared_ptr<Ledger> ledger_;
  std::map<ShareKey, std::weak_ptr<Share>> shares_;
  // By tenant.
  std::map<std::string, std::weak_ptr<ShareGroup>> share_groups_;
  const ShareGroup::Count share_group_count_ =
      std::make_shared<std::atomic<uint32_t>>();
  // By name, as long as there are sessions of theirs...
  std::map<std::string, std::weak_ptr<Tenant>> tenants_;
  // ...or something is charged to them.
  std::map<std::string, std::weak_ptr<Account>> accounts_;
};

}  // namespace rknnd::core

#endif  // DAEMON_CORE_ACCOUNTS_TENANTS_H_
