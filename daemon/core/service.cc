// Puts the parts of daemon/core together and answers reports. Called by the
// transports on the loop.
//
// Torn down in this order: sessions (closed before), the registry's timers,
// arenas, then parts as their last holder, a job perhaps, lets go of them.

#include "daemon/core/service.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/core/fifo_scheduler.h"
#include "daemon/core/session_impl.h"

namespace rknnd::core {

class Service::Impl {
 public:
  explicit Impl(const ServiceOptions& options);
  ~Impl();

  absl::StatusOr<std::shared_ptr<Session>> OpenSession(
      SessionPeer peer, std::shared_ptr<CompletionSink> completions,
      std::shared_ptr<LogSink> log);
  void CloseSession(SessionId id);
  void Drain(std::function<void()> done);

  // What waits for the end of a drain; apart, as jobs may outlive the service.
  struct DrainState {
    std::vector<std::function<void()>> waiting;
  };

  const base::Clock* const clock;
  driver::FaultControl* const faults;
  const bool incoherent;
  const base::Nanoseconds started;
  absl::Status cache_status;
  bool keeps_models = false;
  std::shared_ptr<ServiceParts> parts;
  std::map<SessionId, std::shared_ptr<SessionImpl>> sessions;
  std::shared_ptr<DrainState> drain;

  [[nodiscard]] std::vector<UserReport> Users() const;

 private:
  // What all sessions of a user pay into.
  std::shared_ptr<Account> UserAccount(uint32_t uid);
  [[nodiscard]] std::vector<ServiceParts::SessionCounts> CountUser(
      uint32_t uid) const;

  SessionId next_session_ = 1;
  // Each lasts as long as something of its user's is charged.
  std::map<uint32_t, std::weak_ptr<Account>> users_;
};

Service::Impl::Impl(const ServiceOptions& options)
    : clock(options.clock),
      faults(options.faults),
      incoherent(options.incoherent),
      started(options.clock->Now()),
      parts(std::make_shared<ServiceParts>()),
      drain(std::make_shared<DrainState>()) {
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
  const uint64_t mapped = options.device->info().address_space;
  parts->ledger = Ledger::Create(options.address_space == 0
                                     ? mapped
                                     : std::min(options.address_space, mapped),
                                 "address_space");
  parts->limits_of_user = [all = options.user_limits,
                           users = options.users](uint32_t uid) {
    const auto found = users.find(uid);
    return found == users.end() ? all : found->second;
  };
  parts->count_user = [this](uint32_t uid) { return CountUser(uid); };
  parts->sram = std::make_shared<core::Sram>(parts->device->info().sram_total);
  parts->internal_memory = parts->ledger->Open("internal memory");

  ModelRegistry::Parts registry;
  registry.device = options.device;
  registry.loop = options.loop;
  registry.loader = options.loader;
  registry.pager = options.pager;
  registry.timers = options.timers;
  registry.grace = options.model_grace;
  registry.ledger = parts->ledger;
  registry.cache = std::move(cache);
  registry.log = options.log;
  registry.vendor_sharing = options.vendor_sharing;
  parts->models = ModelRegistry::Create(std::move(registry));
  parts->models->set_gone([weak = std::weak_ptr<ServiceParts>(parts)] {
    if (const auto all = weak.lock()) all->runner->arenas().Refit();
  });
  parts->ledger->set_reclaim(
      [weak = std::weak_ptr<ModelRegistry>(parts->models)] {
        const auto models = weak.lock();
        return models != nullptr && models->DropLongestUnused();
      });

  RunnerImpl::Parts runner;
  runner.device = options.device;
  runner.clock = options.clock;
  runner.isolate = options.isolate;
  runner.waker = options.waker;
  runner.scheduler = std::make_unique<FifoScheduler>(
      options.device->info().cores, options.limits.jobs_per_context);
  runner.arenas =
      std::make_shared<Arenas>(parts->paging(), parts->internal_memory);
  runner.arenas->set_needs([weak = std::weak_ptr<ModelRegistry>(parts->models),
                            cores = options.device->info().cores] {
    const auto models = weak.lock();
    return models == nullptr ? std::vector<uint64_t>()
                             : models->ArenaNeeds(cores);
  });
  runner.idle = [loop = options.loop, weak = std::weak_ptr<DrainState>(drain)] {
    loop->Post([weak] {
      const auto state = weak.lock();
      if (state == nullptr) return;
      for (const auto& done : std::exchange(state->waiting, {})) done();
    });
  };
  parts->runner = std::make_shared<RunnerImpl>(std::move(runner));
  for (const std::string& path : options.preload) {
    parts->models->Preload(path, options.limits.model_bytes);
  }
}

Service::Impl::~Impl() {
  for (auto& [id, session] : sessions) session->End();
  sessions.clear();
  parts->models->Stop();
  // A transport may still hold a gate, and by it the runner.
  parts->runner->arenas().Stop();
  // And a session, which has ended.
  parts->count_user = nullptr;
}

absl::StatusOr<std::shared_ptr<Session>> Service::Impl::OpenSession(
    SessionPeer peer, std::shared_ptr<CompletionSink> completions,
    std::shared_ptr<LogSink> log) {
  if (parts->draining) {
    return absl::UnavailableError(
        "the daemon is draining and takes no new sessions");
  }
  const SessionId id = next_session_++;
  auto user = UserAccount(peer.uid);
  auto session =
      std::make_shared<SessionImpl>(id, std::move(peer), parts, std::move(user),
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
}

std::shared_ptr<Account> Service::Impl::UserAccount(uint32_t uid) {
  std::erase_if(users_, [](const auto& user) { return user.second.expired(); });
  std::weak_ptr<Account>& known = users_[uid];
  std::shared_ptr<Account> account = known.lock();
  if (account != nullptr) return account;
  const uint64_t limit = parts->limits_of_user(uid).memory;
  account =
      parts->ledger->Open(absl::StrCat("user ", uid), "limits.user.memory",
                          limit == 0 ? kNoLimit : limit);
  known = account;
  return account;
}

std::vector<ServiceParts::SessionCounts> Service::Impl::CountUser(
    uint32_t uid) const {
  std::vector<ServiceParts::SessionCounts> counts;
  for (const auto& [id, session] : sessions) {
    if (session->peer().uid != uid) continue;
    counts.push_back({session->holder(), session->contexts_taken(),
                      session->buffers_taken()});
  }
  return counts;
}

std::vector<UserReport> Service::Impl::Users() const {
  std::map<uint32_t, UserReport> users;
  for (const auto& [id, session] : sessions) {
    const uint32_t uid = session->peer().uid;
    UserReport& user = users[uid];
    user.uid = uid;
    ++user.sessions;
    user.contexts += session->context_count();
    user.buffers += session->buffer_count();
  }
  std::vector<UserReport> reports;
  for (auto& [uid, user] : users) {
    const auto known = users_.find(uid);
    const auto account = known == users_.end() ? nullptr : known->second.lock();
    if (account != nullptr) user.memory = account->held().total();
    user.memory_limit = parts->limits_of_user(uid).memory;
    reports.push_back(user);
  }
  return reports;
}

void Service::Impl::Drain(std::function<void()> done) {
  parts->draining = true;
  drain->waiting.push_back(std::move(done));
  for (auto& [id, session] : sessions) session->Refuse();
  parts->runner->Drain();
}

Service::Service(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Service::~Service() = default;

absl::StatusOr<std::unique_ptr<Service>> Service::Create(
    const ServiceOptions& options) {
  if (options.device == nullptr || options.heaps == nullptr ||
      options.clock == nullptr || options.loop == nullptr ||
      options.loader == nullptr || options.pager == nullptr ||
      options.timers == nullptr || options.waker == nullptr) {
    return absl::InvalidArgumentError("a part of ServiceOptions is missing");
  }
  const uint32_t cores = options.device->info().cores;
  if (cores < 1 || cores > 32) {
    return absl::InvalidArgumentError(
        absl::StrCat("device '", options.device->info().kind, "' has ", cores,
                     " cores, 1 to 32 are possible"));
  }
  return std::unique_ptr<Service>(new Service(std::make_unique<Impl>(options)));
}

absl::StatusOr<std::shared_ptr<Session>> Service::OpenSession(
    SessionPeer peer, std::shared_ptr<CompletionSink> completions,
    std::shared_ptr<LogSink> log) {
  return impl_->OpenSession(std::move(peer), std::move(completions),
                            std::move(log));
}

void Service::CloseSession(SessionId session) { impl_->CloseSession(session); }

void Service::Drain(std::function<void()> done) {
  impl_->Drain(std::move(done));
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

bool Service::wants_syncs() const {
  return impl_->faults != nullptr || impl_->incoherent;
}

const driver::DeviceInfo& Service::device_info() const {
  return impl_->parts->device->info();
}

StatusReport Service::Status() const {
  RunnerImpl& runner = *impl_->parts->runner;
  StatusReport report;
  report.device = device_info();
  report.cache_syncs = impl_->parts->device->cache_syncs();
  report.uptime = impl_->clock->Now() - impl_->started;
  report.sessions = static_cast<uint32_t>(impl_->sessions.size());
  report.models = impl_->parts->models->count();
  for (const auto& [id, session] : impl_->sessions) {
    report.contexts += session->context_count();
    report.buffers += session->buffer_count();
  }
  report.jobs_queued = runner.scheduler().counts().queued;
  report.jobs_running = runner.running();
  report.jobs_done = runner.done();
  report.jobs_failed = runner.failed();
  for (uint32_t core = 0; core < report.device.cores; ++core) {
    report.cores.push_back(runner.Report(core));
  }
  report.memory = impl_->parts->ledger->totals();
  report.sram_free = impl_->parts->sram->free();
  report.cache_syncs = impl_->parts->device->cache_syncs();
  if (impl_->faults != nullptr) {
    report.faults = static_cast<uint32_t>(impl_->faults->List().size());
  }
  return report;
}

std::vector<SessionReport> Service::Sessions() const {
  std::vector<SessionReport> reports;
  for (const auto& [id, session] : impl_->sessions) {
    reports.push_back(session->Report());
  }
  return reports;
}

std::vector<ModelReport> Service::Models() const {
  return impl_->parts->models->Reports();
}

std::vector<ContextReport> Service::Contexts() const {
  std::vector<ContextReport> reports;
  for (const auto& [id, session] : impl_->sessions) {
    session->AppendContexts(&reports);
  }
  return reports;
}

std::vector<BufferReport> Service::Buffers() const {
  std::vector<BufferReport> reports;
  for (const auto& [id, session] : impl_->sessions) {
    session->AppendBuffers(&reports);
  }
  return reports;
}

SramReport Service::Sram() const {
  SramReport report;
  report.base = device_info().sram_base;
  report.total = device_info().sram_total;
  report.windows = impl_->parts->sram->windows();
  SramForecasts known;
  for (const auto& [id, session] : impl_->sessions) {
    session->AddSramSaved(&report, &known);
  }
  return report;
}

MemoryReport Service::Memory() const {
  MemoryReport report;
  report.kinds = impl_->parts->ledger->totals();
  report.models = Models();
  report.sessions = Sessions();
  report.budget = impl_->parts->ledger->budget();
  report.budget_used = NpuBytes(report.kinds);
  report.users = impl_->Users();
  report.unshared_total = report.kinds.io + report.kinds.other;
  for (const auto& [id, session] : impl_->sessions) {
    report.unshared_total += session->UnsharedModelBytes();
  }
  return report;
}

}  // namespace rknnd::core
