// What a Service is made of: for service_assembly.cc, which puts it together,
// service.cc, which lets sessions in, and service_reports.cc, which tells of
// it.

#ifndef DAEMON_CORE_SERVICE_IMPL_H_
#define DAEMON_CORE_SERVICE_IMPL_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/posix/clock.h"
#include "daemon/core/accounts/tenants.h"
#include "daemon/core/reports/recorder.h"
#include "daemon/core/reports/traces.h"
#include "daemon/core/running/runner_impl.h"
#include "daemon/core/scheduling/foreign_watch.h"
#include "daemon/core/service.h"
#include "daemon/core/sessions/common_limits.h"
#include "daemon/core/sessions/open_sessions.h"
#include "daemon/core/sessions/session.h"
#include "daemon/core/terms/presence.h"
#include "daemon/core/terms/types.h"
#include "driver/fault.h"

namespace rknnd::core {

// It ends in this order: nobody is called back any more, the sessions, the
// timers of the registry, the arenas; then the parts, as their last holder, a
// job perhaps, lets go of them.
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
  [[nodiscard]] std::vector<UserReport> Users() const;

  [[nodiscard]] Recorder& recorder() const {
    return parts->runner->policies().attribution->recorder();
  }

  const base::Clock* const clock;
  driver::FaultControl* const faults;
  const bool incoherent;
  const base::Nanoseconds started;
  absl::Status cache_status;
  bool keeps_models = false;
  const std::shared_ptr<ServiceParts> parts;
  const std::shared_ptr<ForeignWatch> foreign;
  std::shared_ptr<Traces> traces;
  std::function<void(bool draining)> on_draining;  // or null
  OpenSessions sessions;

 private:
  // The runner, with what it calls back for.
  [[nodiscard]] std::shared_ptr<RunnerImpl> MakeRunner(
      const ServiceOptions& options);
  void OnHang(const HangReport& report);
  void OnIdle();
  // Sessions, and who waits to hear of it.
  void TellDraining(bool draining);
  // What is lent has changed.
  void ApplyLeases();
  void SettleLeases();
  // What weights, internal memory and buffers may have together.
  [[nodiscard]] uint64_t AddressSpace() const;

  LiveOptions options_;
  SessionId next_session_ = 1;
  std::unique_ptr<Tenants> tenants_;
  std::unique_ptr<CommonLimits> common_;
  Presence presence_;
};

}  // namespace rknnd::core

#endif  // DAEMON_CORE_SERVICE_IMPL_H_
