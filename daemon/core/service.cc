// What a Service does: lets sessions in, lends cores, drains, and passes the
// transports' questions on. Called by the transports on the loop.

#include "daemon/core/service.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status/status.h"
#include "daemon/core/memory/buffer_keys.h"
#include "daemon/core/models/preloaded_models.h"
#include "daemon/core/service_impl.h"
#include "daemon/core/terms/events.h"

namespace rknnd::core {

absl::StatusOr<std::shared_ptr<Session>> Service::Impl::OpenSession(
    SessionPeer peer, std::shared_ptr<CompletionSink> completions,
    std::shared_ptr<LogSink> log) {
  RKNND_RETURN_IF_ERROR(common_->CheckSession(peer));
  auto tenant = tenants_->Of(peer);
  // The new one's own first: messages name the table that its limits are from.
  std::vector<const SessionPeer*> peers = sessions.PeersOf(*tenant);
  peers.insert(peers.begin(), &peer);
  tenants_->SetLimits(*tenant, peers);
  if (!peer.admin) {
    // Operators may always look.
    absl::Status room = sessions.CheckTenant(*tenant, kSessionLimit);
    for (const CommonKind kind :
         {CommonKind::kSessions, CommonKind::kDescriptors,
          CommonKind::kMappings}) {
      room.Update(common_->Check(*tenant, kind));
    }
    if (!room.ok()) return room;
  }
  const SessionId id = next_session_++;
  recorder().NameSession(id, peer);
  auto share = tenants_->ShareOf(peer, *tenant);
  auto session = std::make_shared<Session>(
      id, std::move(peer), parts, std::move(tenant), std::move(share),
      std::move(completions), std::move(log));
  sessions.Add(session);
  return session;
}

void Service::Impl::CloseSession(SessionId id) {
  const std::shared_ptr<Session> session = sessions.Take(id);
  if (session == nullptr) return;
  session->End();
  parts->models->NoteAskerGone();
  if (session->abandoned() > 0 && parts->log != nullptr) {
    EventFields fields = FieldsOf(id, session->peer());
    fields.event = Event::kDiedUnderJob;
    parts->log->LogEvent(
        kDaemonLogWarning,
        absl::StrCat(session->holder(), " has gone with ", session->abandoned(),
                     " job(s) not answered: those that run end, nobody else "
                     "notices"),
        fields);
  }
  recorder().EndSession(id);
  if (parts->leases->GiveBack(id)) ApplyLeases();
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
    tenants_->SetLimits(*session->tenant(),
                        sessions.PeersOf(*session->tenant()));
    session->share().SetPolicy(
        ResolvePolicy(options_.scheduling, session->peer()));
  }
  ModelRegistry& models = *parts->models;
  models.set_grace(options.model_grace);
  models.SetCacheLimit(options.cache_limit);
  models.preloaded().Set(options.preload, options.limits.model_bytes);
  return absl::OkStatus();
}

void Service::Impl::Lease(SessionId id, uint32_t cores,
                          const std::string& command,
                          std::function<void(absl::Status)> done) {
  const Session* session = sessions.Find(id);
  if (session == nullptr) {
    return done(absl::FailedPreconditionError("the session has ended"));
  }
  const int32_t pid = session->peer().pid;
  // By pointer: the callback outlives what is refused.
  const auto held =
      std::make_shared<std::function<void(absl::Status)>>(std::move(done));
  const absl::Status taken = parts->leases->Take(
      id, {cores, command, pid},
      [held](const absl::Status& status) { (*held)(status); });
  if (!taken.ok()) return (*held)(taken);
  ApplyLeases();
}

void Service::Impl::ApplyLeases() {
  parts->runner->SetLent(parts->leases->list());
  for (const auto& [id, session] : sessions) session->AnswerStranded();
  SettleLeases();
}

void Service::Impl::SettleLeases() {
  const uint32_t busy = parts->runner->AwaitCores(parts->leases->awaited());
  parts->leases->Settle(busy);
  // Fewer are awaited now, if any.
  parts->runner->AwaitCores(parts->leases->awaited());
}

void Service::Impl::BeginDrain(Drain::Reason reason,
                               std::function<void(absl::Status)> done) {
  const bool first = !parts->drain.refuses();
  parts->drain.Begin(reason, std::move(done));
  if (first) TellDraining(true);
  parts->runner->ends().SetDraining(true);
}

absl::Status Service::Impl::UndoDrain() {
  RKNND_RETURN_IF_ERROR(parts->drain.Undo());
  parts->runner->ends().SetDraining(false);
  TellDraining(false);
  return absl::OkStatus();
}

void Service::Impl::TellDraining(bool draining) {
  for (auto& [id, session] : sessions) session->SetRefusing(draining);
  if (on_draining != nullptr) on_draining(draining);
}

Service::Service(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Service::~Service() = default;

absl::StatusOr<std::unique_ptr<Service>> Service::Create(
    const ServiceOptions& options) {
  if (options.device == nullptr || options.heaps == nullptr ||
      options.clock == nullptr || options.loop == nullptr ||
      options.loader == nullptr || options.quick_loader == nullptr ||
      options.pager == nullptr || options.timers == nullptr ||
      options.waker == nullptr) {
    return absl::InvalidArgumentError("a part of ServiceOptions is missing");
  }
  const uint32_t cores = options.device->info().cores;
  if (cores < 1 || cores > 32) {
    return absl::InvalidArgumentError(
        absl::StrCat("device '", options.device->info().kind, "' has ", cores,
                     " cores, 1 to 32 are possible"));
  }
  RKNND_RETURN_IF_ERROR(CheckCores(options.scheduling, cores));
  return std::unique_ptr<Service>(new Service(std::make_unique<Impl>(options)));
}

absl::StatusOr<std::shared_ptr<Session>> Service::OpenSession(
    SessionPeer peer, std::shared_ptr<CompletionSink> completions,
    std::shared_ptr<LogSink> log) {
  return impl_->OpenSession(std::move(peer), std::move(completions),
                            std::move(log));
}

absl::Status Service::Reconfigure(const LiveOptions& options) {
  return impl_->Reconfigure(options);
}

const SessionLimits& Service::limits() const { return impl_->parts->limits; }

void Service::CloseSession(SessionId session) { impl_->CloseSession(session); }

void Service::BeginDrain(Drain::Reason reason,
                         std::function<void(absl::Status)> done) {
  impl_->BeginDrain(reason, std::move(done));
}

absl::Status Service::UndoDrain() { return impl_->UndoDrain(); }

void Service::set_draining(std::function<void(bool draining)> draining) {
  impl_->on_draining = std::move(draining);
}

void Service::Lease(SessionId session, uint32_t cores,
                    const std::string& command,
                    std::function<void(absl::Status)> done) {
  impl_->Lease(session, cores, command, std::move(done));
}

void Service::FindForeignUsers(std::function<void()> done) {
  impl_->foreign->Look(std::move(done));
}

void Service::TakeTrace(base::Nanoseconds since,
                        std::function<void(absl::StatusOr<Trace>)> done) {
  impl_->traces->Take(since, std::move(done));
}

absl::StatusOr<KeyedBuffer> Service::FindBuffer(const BufferKey& key) const {
  RKNND_ASSIGN_OR_RETURN(const std::shared_ptr<Buffer> buffer,
                         impl_->parts->keys->Find(key));
  return KeyedBuffer{key, buffer->size(), buffer->read_only()};
}

void Service::set_key_gone(std::function<void(const BufferKey&)> gone) {
  impl_->parts->keys->set_gone(std::move(gone));
}

Runner& Service::runner() { return *impl_->parts->runner; }

bool Service::keeps_models() const { return impl_->keeps_models; }

absl::Status Service::cache_status() const { return impl_->cache_status; }

absl::StatusOr<driver::FaultControl*> Service::faults() const {
  if (impl_->faults != nullptr) return impl_->faults;
  return absl::FailedPreconditionError(
      "faults on demand are off: they can be enabled only when the daemon is "
      "started (rknnd --faults, or 'enabled = true' under [faults] in its "
      "configuration)");
}

void Service::SetFault(
    const driver::Fault& fault,
    std::function<void(absl::StatusOr<driver::FaultReport>)> done) {
  const auto control = faults();
  if (!control.ok()) return done(control.status());
  impl_->parts->pager->Post([control = *control, fault, done = std::move(done),
                             loop = impl_->parts->loop] {
    loop->Post([set = control->Set(fault), done] { done(set); });
  });
}

void Service::ClearFault(uint64_t id, std::function<void(absl::Status)> done) {
  const auto control = faults();
  if (!control.ok()) return done(control.status());
  impl_->parts->pager->Post([control = *control, id, done = std::move(done),
                             loop = impl_->parts->loop] {
    loop->Post([cleared = control->Clear(id), done] { done(cleared); });
  });
}

std::vector<driver::QuarantinedModel> Service::QuarantinedModels() const {
  return impl_->parts->device->quarantined();
}

absl::Status Service::ReleaseModel(const std::string& sha256) {
  return impl_->parts->device->EndQuarantine(sha256);
}

void Service::ResetDevice(std::function<void(absl::Status)> done) {
  // On the pager: jobs are ended by it, and that is no work for the loop.
  const auto told = [log = impl_->parts->log,
                     done = std::move(done)](const absl::Status& status) {
    if (log != nullptr && !absl::IsUnimplemented(status)) {
      EventFields fields;
      fields.event = Event::kReset;
      log->LogEvent(kDaemonLogWarning,
                    status.ok() ? "the NPU was reset by an operator: jobs in "
                                  "flight are run again by their clients"
                                : absl::StrCat("the NPU could not be reset: ",
                                               std::string(status.message())),
                    fields);
    }
    done(status);
  };
  impl_->parts->pager->Post(
      [device = impl_->parts->device, loop = impl_->parts->loop, told] {
        device->Reset([loop, told](absl::Status status) {
          loop->Post([told, status = std::move(status)] { told(status); });
        });
      });
}

bool Service::wants_syncs() const {
  return impl_->faults != nullptr || impl_->incoherent;
}

const driver::DeviceInfo& Service::device_info() const {
  return impl_->parts->device->info();
}

}  // namespace rknnd::core
