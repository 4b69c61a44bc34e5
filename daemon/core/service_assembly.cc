// Puts the parts of daemon/core together, and takes them apart.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/core/memory/buffer_keys.h"
#include "daemon/core/models/preloaded_models.h"
#include "daemon/core/scheduling/scheduler.h"
#include "daemon/core/service.h"
#include "daemon/core/service_impl.h"
#include "daemon/core/terms/events.h"

namespace rknnd::core {
namespace {

// As a device without coherence sees it, a buffer has its copy, what was last
// the same, and the memory once more (driver/faults/incoherent_memory.h).
uint64_t MappingsOfABuffer(const ServiceOptions& options) {
  return options.incoherent || options.faults != nullptr ? 5 : 1;
}

std::shared_ptr<ServiceParts> MakeParts(const ServiceOptions& options) {
  auto parts = std::make_shared<ServiceParts>();
  parts->device = options.device;
  parts->heaps = options.heaps;
  parts->physical = options.physical;
  parts->loop = options.loop;
  parts->pager = options.pager;
  parts->log = options.log;
  parts->limits = options.limits;
  parts->vendor_sharing = options.vendor_sharing;
  const driver::DeviceInfo& device = options.device->info();
  parts->leases = std::make_shared<Leases>(AllCores(device.cores));
  parts->sram = std::make_shared<Sram>(device.sram_total, device.core_sram);
  parts->keys = std::make_shared<BufferKeys>();
  return parts;
}

// Null: the options name no folder. An error: why theirs cannot be used.
absl::StatusOr<std::shared_ptr<ModelCache>> OpenCache(
    const ServiceOptions& options) {
  if (options.cache_dir.empty()) return nullptr;
  return ModelCache::Open(options.cache_dir, options.cache_limit,
                          options.device->info().compiler);
}

std::shared_ptr<ModelRegistry> MakeModels(const ServiceOptions& options,
                                          std::shared_ptr<Ledger> ledger,
                                          std::shared_ptr<ModelCache> cache) {
  ModelRegistry::Parts registry;
  registry.device = options.device;
  registry.loop = options.loop;
  registry.loader = options.loader;
  registry.quick_loader = options.quick_loader;
  registry.clock = options.clock;
  registry.pager = options.pager;
  registry.timers = options.timers;
  registry.grace = options.model_grace;
  registry.ledger = std::move(ledger);
  registry.cache = std::move(cache);
  registry.keeper = options.keeper;
  registry.log = options.log;
  registry.spare =
      std::make_shared<SpareMemory>(options.loader, options.give_back_memory);
  registry.vendor_sharing = options.vendor_sharing;
  return ModelRegistry::Create(std::move(registry));
}

std::shared_ptr<SharedRuns> MakeSharedRuns(const ServiceOptions& options,
                                           const ServiceParts& parts,
                                           Scheduler* scheduler) {
  SharedRuns::Parts shared;
  shared.paging = parts.paging();
  shared.clock = options.clock;
  shared.timers = options.timers;
  shared.scheduler = scheduler;
  shared.account = parts.ledger->Open("shared answers", "shared answers",
                                      SharedRuns::kMostBytes);
  return std::make_shared<SharedRuns>(std::move(shared));
}

// Internal memory is as large as the models that are loaded need it.
std::shared_ptr<Arenas> MakeArenas(const ServiceParts& parts) {
  auto arenas = std::make_shared<Arenas>(parts.paging(), parts.internal_memory,
                                         parts.sram);
  arenas->set_needs([weak = std::weak_ptr<ModelRegistry>(parts.models),
                     cores = parts.device->info().cores] {
    const auto models = weak.lock();
    return models == nullptr ? std::vector<uint64_t>()
                             : models->ArenaNeeds(cores);
  });
  return arenas;
}

// What is kept only in case goes when memory is short, and internal memory
// shrinks when a model has gone.
void GiveBackWhenShort(const std::shared_ptr<ServiceParts>& parts) {
  const std::weak_ptr<ServiceParts> weak = parts;
  parts->models->set_gone([weak] {
    if (const auto all = weak.lock()) all->runner->arenas().Refit();
  });
  parts->ledger->set_reclaim([weak] {
    const auto all = weak.lock();
    if (all == nullptr) return false;
    return (all->runner != nullptr &&
            all->runner->policies().shared_runs->DropIdle()) ||
           all->models->DropLongestUnused();
  });
}

std::shared_ptr<Traces> MakeTraces(const ServiceOptions& options,
                                   const RunnerImpl& runner) {
  const driver::DeviceInfo& device = options.device->info();
  Traces::Parts timeline;
  timeline.recorder = runner.policies().attribution->recorder_ptr();
  timeline.clock = options.clock;
  timeline.loop = options.loop;
  timeline.pager = options.pager;
  timeline.timers = options.timers;
  timeline.log = options.log;
  timeline.cores = device.cores;
  timeline.device = absl::StrCat(device.kind, ", ", device.soc);
  timeline.folder = options.trace_dir;
  return Traces::Create(std::move(timeline));
}

}  // namespace

Service::Impl::Impl(const ServiceOptions& options)
    : clock(options.clock),
      faults(options.faults),
      incoherent(options.incoherent),
      started(options.clock->Now()),
      parts(MakeParts(options)),
      foreign(std::make_shared<ForeignWatch>(
          options.foreign_users, options.pager, options.loop, options.clock)),
      options_(options) {
  std::shared_ptr<ModelCache> cache;
  if (auto opened = OpenCache(options); !opened.ok()) {
    cache_status = opened.status();
  } else if (*opened != nullptr) {
    cache = *std::move(opened);
    cache_status = cache->writable();
    keeps_models = cache_status.ok();
  }
  parts->ledger = Ledger::Create(AddressSpace(), "address_space");
  parts->ledger->SetBudget(AddressSpace(), options_.kept_free);
  parts->internal_memory = parts->ledger->Open("internal memory");
  parts->models = MakeModels(options, parts->ledger, std::move(cache));
  GiveBackWhenShort(parts);
  parts->runner = MakeRunner(options);
  traces = MakeTraces(options, *parts->runner);
  tenants_ = std::make_unique<Tenants>(options_, options.device->info().cores,
                                       parts->ledger);
  common_ = std::make_unique<CommonLimits>(options_, sessions, *parts->models,
                                           MappingsOfABuffer(options));
  parts->sessions = &sessions;
  parts->common = common_.get();
  parts->models->preloaded().Set(options.preload, options.limits.model_bytes);
}

Service::Impl::~Impl() {
  presence_.End();
  sessions.EndAll();
  traces->Stop();
  parts->models->Stop();
  // A transport may still hold a gate, and by it the runner.
  parts->runner->arenas().Stop();
  parts->runner->policies().shared_runs->Stop();
}

std::shared_ptr<RunnerImpl> Service::Impl::MakeRunner(
    const ServiceOptions& options) {
  RunnerImpl::Parts runner;
  runner.device = options.device;
  runner.clock = options.clock;
  runner.isolate = options.isolate;
  runner.waker = options.waker;
  runner.fences = options.fences;
  runner.hang = options.scheduling.hang;
  runner.fence_timeout = options.scheduling.fence_timeout;
  runner.hung = presence_.OnLoop<HangReport>(
      options.loop, [this](const HangReport& report) { OnHang(report); });
  runner.freed = presence_.OnLoop(options.loop, [this] { SettleLeases(); });
  runner.idle = presence_.OnLoop(options.loop, [this] { OnIdle(); });
  // A session has no more slots.
  runner.jobs_per_context =
      std::min(options.limits.jobs_per_context, kJobSlots);
  runner.scheduler = std::make_unique<Scheduler>(
      options.device->info().cores, runner.jobs_per_context + 1,
      options.scheduling, options.clock);
  runner.shared_runs = MakeSharedRuns(options, *parts, runner.scheduler.get());
  runner.arenas = MakeArenas(*parts);
  return std::make_shared<RunnerImpl>(std::move(runner));
}

void Service::Impl::OnHang(const HangReport& report) {
  if (parts->log != nullptr) {
    EventFields fields = FieldsOf(report);
    if (const Session* session = sessions.Find(report.session)) {
      fields.pid = session->peer().pid;
      fields.comm = session->peer().comm;
    }
    parts->log->LogEvent(kDaemonLogWarning, Describe(report), fields);
  }
  if (report.ended) return;
  traces->WriteFile(absl::StrCat("a job of ", report.holder, " hangs"));
}

void Service::Impl::OnIdle() {
  // A drain that was undone meanwhile may have begun anew.
  if (parts->runner->ends().IsIdle()) parts->drain.End();
}

uint64_t Service::Impl::AddressSpace() const {
  const uint64_t mapped = parts->device->info().address_space;
  return options_.address_space == 0 ? mapped
                                     : std::min(options_.address_space, mapped);
}

}  // namespace rknnd::core
