// What a Service is made of: for service.cc, which puts it together and lets
// sessions in, and service_reports.cc, which tells of it.

#ifndef DAEMON_CORE_SERVICE_IMPL_H_
#define DAEMON_CORE_SERVICE_IMPL_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/posix/clock.h"
#include "daemon/core/accounts/ledger.h"
#include "daemon/core/accounts/share.h"
#include "daemon/core/accounts/tenant.h"
#include "daemon/core/reports/recorder.h"
#include "daemon/core/reports/traces.h"
#include "daemon/core/running/runner_impl.h"
#include "daemon/core/scheduling/admission.h"
#include "daemon/core/scheduling/foreign_watch.h"
#include "daemon/core/service.h"
#include "daemon/core/sessions/session_impl.h"
#include "daemon/core/terms/types.h"
#include "driver/fault.h"

namespace rknnd::core {

// Thread: loop.
class Service::Impl {
 public:
  explicit Impl(const ServiceOptions& options);
  ~Impl();

  absl::StatusOr<std::shared_ptr<Session>> OpenSession(
      SessionPeer peer, std::shared_ptr<CompletionSink> completions,
      std::shared_ptr<LogSink> log);
  void CloseSession(SessionId id);
  void BeginDrain(Drain::Reason reason, std::function<void(absl::Status)> done);
  absl::Status UndoDrain();
  absl::Status Reconfigure(const LiveOptions& options);
  void Lease(SessionId id, uint32_t cores, const std::string& command,
             std::function<void(absl::Status)> done);

  const base::Clock* const clock;
  driver::FaultControl* const faults;
  const bool incoherent;
  const base::Nanoseconds started;
  absl::Status cache_status;
  bool keeps_models = false;
  std::shared_ptr<ServiceParts> parts;
  std::map<SessionId, std::shared_ptr<SessionImpl>> sessions;
  std::function<void(bool draining)> on_draining;  // or null
  std::shared_ptr<Traces> traces;
  std::shared_ptr<ForeignWatch> foreign;

  [[nodiscard]] std::vector<UserReport> Users() const;
  [[nodiscard]] std::vector<Stream> StreamsBut(SessionId session,
                                               uint32_t context) const;

  [[nodiscard]] Recorder& recorder() const {
    return parts->runner->policies().attribution->recorder();
  }

 private:
  // Sessions, and who waits to hear of it.
  void TellDraining(bool draining);
  // What is lent has changed.
  void ApplyLeases();
  void SettleLeases();
  // Whose limits sessions of `peer` count against. Its limits are the largest
  // that `peer` and its sessions have by themselves.
  std::shared_ptr<Tenant> TenantOf(const SessionPeer& peer);
  void SetLimitsOf(Tenant& tenant, const SessionPeer* peer) const;
  [[nodiscard]] std::vector<Holding> Count(const Tenant& tenant,
                                           const CountLimit& limit) const;
  // Whether there may be one more of the kind for `tenant`, beside what all
  // have.
  [[nodiscard]] absl::Status CheckCommon(const Tenant& tenant,
                                         CommonKind kind) const;
  // Mappings, at most.
  [[nodiscard]] uint64_t MappingsOfABuffer() const;
  [[nodiscard]] uint64_t MappingsOf(const SessionImpl& session) const;
  [[nodiscard]] uint64_t AddressSpace() const;

  // One for all sessions of a process, or of an allocation. A number that is
  // used again, by another user's, is another process.
  std::shared_ptr<Share> ShareOf(const SessionPeer& peer, const Tenant& tenant);
  absl::Status CheckSessions(const SessionPeer& peer) const;
  // Whether one more may come from another machine: local programs find room,
  // whoever is out there.
  absl::Status CheckRemoteSessions() const;

  LiveOptions options_;
  SessionId next_session_ = 1;
  struct ShareKey {
    std::string allocation;  // or empty
    int32_t pid;
    uint32_t uid;
    friend auto operator<=>(const ShareKey&, const ShareKey&) = default;
  };
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

#endif  // DAEMON_CORE_SERVICE_IMPL_H_
