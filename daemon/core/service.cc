// Puts the parts of daemon/core together; sessions, leases and draining. Called
// by the transports on the loop.
//
// Torn down in this order: sessions (closed before), the registry's timers,
// arenas, then parts as their last holder, a job perhaps, lets go of them.

#include "daemon/core/service.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status/status.h"
#include "daemon/core/memory/buffer_keys.h"
#include "daemon/core/scheduling/fair_scheduler.h"
#include "daemon/core/service_impl.h"
#include "daemon/core/terms/events.h"

namespace rknnd::core {
namespace {

uint32_t AllCores(uint32_t count) {
  return static_cast<uint32_t>((uint64_t{1} << count) - 1);
}

}  // namespace

Service::Impl::Impl(const ServiceOptions& options)
    : clock(options.clock),
      faults(options.faults),
      incoherent(options.incoherent),
      started(options.clock->Now()),
      parts(std::make_shared<ServiceParts>()),
      foreign(std::make_shared<ForeignWatch>(
          options.foreign_users, options.pager, options.loop, options.clock)),
      options_(options) {
  std::shared_ptr<ModelCache> cache;
  if (!options.cache_dir.empty()) {
    auto opened = ModelCache::Open(options.cache_dir, options.cache_limit,
                                   options.device->info().compiler);
    cache_status = opened.status();
    if (opened.ok()) {
      cache = *std::move(opened);
      cache_status = cache->writable();
      keeps_models = cache_status.ok();
    }
  }

  parts->device = options.device;
  parts->heaps = options.heaps;
  parts->physical = options.physical;
  parts->loop = options.loop;
  parts->pager = options.pager;
  parts->log = options.log;
  parts->limits = options.limits;
  parts->vendor_sharing = options.vendor_sharing;
  parts->ledger = Ledger::Create(AddressSpace(), "address_space");
  parts->ledger->SetBudget(AddressSpace(), options_.kept_free);
  parts->count = [this](const Tenant& tenant, const CountLimit& limit) {
    return Count(tenant, limit);
  };
  parts->common = [this](const Tenant& tenant, CommonKind kind) {
    return CheckCommon(tenant, kind);
  };
  parts->leases =
      std::make_shared<Leases>(AllCores(options.device->info().cores));
  parts->streams_but = [this](SessionId session, uint32_t context) {
    return StreamsBut(session, context);
  };
  parts->sram = std::make_shared<core::Sram>(parts->device->info().sram_total);
  parts->keys = std::make_shared<BufferKeys>();
  parts->internal_memory = parts->ledger->Open("internal memory");

  ModelRegistry::Parts registry;
  registry.device = options.device;
  registry.loop = options.loop;
  registry.loader = options.loader;
  registry.quick_loader = options.quick_loader;
  registry.clock = options.clock;
  registry.pager = options.pager;
  registry.timers = options.timers;
  registry.grace = options.model_grace;
  registry.ledger = parts->ledger;
  registry.cache = std::move(cache);
  registry.keeper = options.keeper;
  registry.log = options.log;
  registry.spare =
      std::make_shared<SpareMemory>(options.loader, options.give_back_memory);
  registry.vendor_sharing = options.vendor_sharing;
  parts->models = ModelRegistry::Create(std::move(registry));
  parts->models->set_gone([weak = std::weak_ptr<ServiceParts>(parts)] {
    if (const auto all = weak.lock()) all->runner->arenas().Refit();
  });
  parts->ledger->set_reclaim(
      [weak = std::weak_ptr<ModelRegistry>(parts->models),
       all = std::weak_ptr<ServiceParts>(parts)] {
        const auto service = all.lock();
        if (service != nullptr && service->runner != nullptr &&
            service->runner->policies().shared_runs->DropIdle()) {
          return true;
        }
        const auto models = weak.lock();
        return models != nullptr && models->DropLongestUnused();
      });

  RunnerImpl::Parts runner;
  runner.device = options.device;
  runner.clock = options.clock;
  runner.isolate = options.isolate;
  runner.waker = options.waker;
  runner.fences = options.fences;
  runner.hang = options.scheduling.hang;
  runner.fence_timeout = options.scheduling.fence_timeout;
  runner.hung =
      [this, loop = options.loop, log = options.log,
       weak = std::weak_ptr<Drain>(parts->drain)](const HangReport& report) {
        loop->Post([this, log, weak, report] {
          // It lasts as long as the service does.
          if (weak.expired()) return;
          if (log != nullptr) {
            EventFields fields = FieldsOf(report);
            if (const auto found = sessions.find(report.session);
                found != sessions.end()) {
              fields.pid = found->second->peer().pid;
              fields.comm = found->second->peer().comm;
            }
            log->LogEvent(kDaemonLogWarning, Describe(report), fields);
          }
          if (report.ended) return;
          traces->WriteFile(absl::StrCat("a job of ", report.holder, " hangs"));
        });
      };
  // A session has no more slots.
  runner.jobs_per_context =
      std::min(options.limits.jobs_per_context, kJobSlots);
  runner.scheduler = std::make_unique<FairScheduler>(
      options.device->info().cores, runner.jobs_per_context + 1,
      options.scheduling, options.clock);
  SharedRuns::Parts shared;
  shared.paging = parts->paging();
  shared.clock = options.clock;
  shared.timers = options.timers;
  shared.scheduler = runner.scheduler.get();
  shared.account = parts->ledger->Open("shared answers", "shared answers",
                                       SharedRuns::kMostBytes);
  runner.shared_runs = std::make_shared<SharedRuns>(std::move(shared));
  runner.arenas =
      std::make_shared<Arenas>(parts->paging(), parts->internal_memory);
  runner.arenas->set_needs([weak = std::weak_ptr<ModelRegistry>(parts->models),
                            cores = options.device->info().cores] {
    const auto models = weak.lock();
    return models == nullptr ? std::vector<uint64_t>()
                             : models->ArenaNeeds(cores);
  });
  runner.idle = [this, loop = options.loop,
                 weak = std::weak_ptr<Drain>(parts->drain)] {
    loop->Post([this, weak] {
      const auto alive = weak.lock();
      // One that was undone meanwhile may have begun anew.
      if (alive != nullptr && parts->runner->ends().IsIdle()) alive->End();
    });
  };
  runner.freed = [this, loop = options.loop,
                  weak = std::weak_ptr<Drain>(parts->drain)] {
    loop->Post([this, weak] {
      if (weak.lock() != nullptr) SettleLeases();
    });
  };
  parts->runner = std::make_shared<RunnerImpl>(std::move(runner));
  Traces::Parts timeline;
  timeline.recorder = parts->runner->policies().attribution->recorder_ptr();
  timeline.clock = options.clock;
  timeline.loop = options.loop;
  timeline.pager = options.pager;
  timeline.timers = options.timers;
  timeline.log = options.log;
  timeline.cores = options.device->info().cores;
  timeline.device = absl::StrCat(options.device->info().kind, ", ",
                                 options.device->info().soc);
  timeline.folder = options.trace_dir;
  traces = Traces::Create(std::move(timeline));
  parts->models->SetPreloaded(options.preload, options.limits.model_bytes);
}

Service::Impl::~Impl() {
  for (auto& [id, session] : sessions) session->End();
  sessions.clear();
  traces->Stop();
  parts->models->Stop();
  // A transport may still hold a gate, and by it the runner.
  parts->runner->arenas().Stop();
  parts->runner->policies().shared_runs->Stop();
  // And a session, which has ended.
  parts->count = nullptr;
  parts->common = nullptr;
  parts->streams_but = nullptr;
  parts->drain = nullptr;
}

absl::StatusOr<std::shared_ptr<Session>> Service::Impl::OpenSession(
    SessionPeer peer, std::shared_ptr<CompletionSink> completions,
    std::shared_ptr<LogSink> log) {
  if (absl::Status room = CheckSessions(peer); !room.ok()) return room;
  auto tenant = TenantOf(peer);
  if (!peer.admin) {
    // Operators may always look.
    absl::Status room =
        tenant->Check(kSessionLimit, Count(*tenant, kSessionLimit));
    room.Update(CheckCommon(*tenant, CommonKind::kSessions));
    room.Update(CheckCommon(*tenant, CommonKind::kDescriptors));
    room.Update(CheckCommon(*tenant, CommonKind::kMappings));
    if (!room.ok()) return room;
  }
  const SessionId id = next_session_++;
  recorder().NameSession(id, peer);
  auto share = ShareOf(peer, *tenant);
  auto session = std::make_shared<SessionImpl>(
      id, std::move(peer), parts, std::move(tenant), std::move(share),
      std::move(completions), std::move(log));
  sessions[id] = session;
  return session;
}

void Service::Impl::CloseSession(SessionId id) {
  const auto found = sessions.find(id);
  if (found == sessions.end()) return;
  const std::shared_ptr<SessionImpl> session = std::move(found->second);
  sessions.erase(found);
  session->End();
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

std::vector<Stream> Service::Impl::StreamsBut(SessionId session,
                                              uint32_t context) const {
  std::vector<Stream> streams;
  for (const auto& [id, other] : sessions) {
    other->AppendStreams(id == session ? context : 0, &streams);
  }
  return streams;
}

void Service::Impl::Lease(SessionId id, uint32_t cores,
                          const std::string& command,
                          std::function<void(absl::Status)> done) {
  const auto found = sessions.find(id);
  if (found == sessions.end()) {
    return done(absl::FailedPreconditionError("the session has ended"));
  }
  const int32_t pid = found->second->peer().pid;
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
  const bool first = !parts->drain->refuses();
  parts->drain->Begin(reason, std::move(done));
  if (first) TellDraining(true);
  parts->runner->ends().SetDraining(true);
}

absl::Status Service::Impl::UndoDrain() {
  RKNND_RETURN_IF_ERROR(parts->drain->Undo());
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
