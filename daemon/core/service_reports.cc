// What a Service tells of itself: the reports of rknnctl. Called by the
// transports on the loop; no client's word comes here.

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/core/service.h"
#include "daemon/core/service_impl.h"
#include "daemon/core/sessions/context_sram.h"

namespace rknnd::core {

std::vector<UserReport> Service::Impl::Users() const {
  std::map<uint32_t, UserReport> users;
  for (const auto& [id, session] : sessions) {
    // A share socket's are not their users'.
    if (session->peer().allocation != nullptr) continue;
    const uint32_t uid = session->peer().uid;
    UserReport& user = users[uid];
    user.uid = uid;
    ++user.sessions;
    user.contexts += session->contexts().size();
    user.buffers += session->buffer_count();
  }
  std::vector<UserReport> reports;
  for (auto& [uid, user] : users) {
    const auto tenant = tenants_->FindUser(uid);
    if (tenant != nullptr) {
      user.memory = tenant->account()->held().total();
      user.memory_limit = tenant->limits().memory;
    }
    reports.push_back(user);
  }
  return reports;
}

StatusReport Service::Status() const {
  RunnerImpl& runner = *impl_->parts->runner;
  StatusReport report;
  report.device = device_info();
  report.uptime = impl_->clock->Now() - impl_->started;
  report.sessions = static_cast<uint32_t>(impl_->sessions.size());
  report.models = impl_->parts->models->count();
  for (const auto& [id, session] : impl_->sessions) {
    report.contexts += session->contexts().size();
    report.buffers += session->buffer_count();
  }
  report.jobs_queued = runner.policies().scheduler->counts().queued;
  report.jobs_running = runner.running();
  report.jobs_done = runner.ends().totals().done();
  report.jobs_failed = runner.ends().totals().failed();
  report.jobs_dropped = runner.policies().attribution->drops();
  report.jobs_shared = runner.policies().attribution->shared();
  report.jobs_hung = runner.hung();
  report.cores_hung = runner.cores_hung();
  report.draining = impl_->parts->drain.refuses();
  report.resets = impl_->parts->device->resets();
  report.worker_deaths = impl_->parts->device->worker_deaths();
  for (uint32_t core = 0; core < report.device.cores; ++core) {
    CoreReport& added = report.cores.emplace_back(runner.Report(core));
    const JobRecord last = impl_->recorder().LastOf(core);
    added.session = last.session;
    if (last.session != 0) {
      added.model = impl_->recorder().ModelName(last.model);
    }
    const JobRecord running = impl_->recorder().RunningOn(core);
    if (running.session != 0) {
      added.session = running.session;
      added.model = impl_->recorder().ModelName(running.model);
      added.running =
          std::max<base::Nanoseconds>(impl_->clock->Now() - running.started, 1);
      const Session* owner = impl_->sessions.Find(running.session);
      added.holder = owner == nullptr
                         ? absl::StrCat("session ", running.session, " (pid ",
                                        running.pid, ", which has gone)")
                         : owner->holder();
    }
  }
  for (const LentCores& lent : impl_->parts->leases->list()) {
    for (uint32_t core = 0; core < report.device.cores; ++core) {
      if ((lent.cores >> core & 1) == 0) continue;
      report.cores[core].lent_to =
          absl::StrCat(lent.command, " (pid ", lent.pid, ")");
    }
  }
  report.foreign_users = impl_->foreign->users();
  report.admitted_ppm =
      AdmittedPpm(impl_->sessions.StreamsBut(0, 0), impl_->parts->board());
  report.memory = impl_->parts->ledger->totals();
  report.sram_free = impl_->parts->sram->free();
  report.cache_syncs = impl_->parts->device->cache_syncs();
  if (impl_->faults != nullptr) {
    report.faults = static_cast<uint32_t>(impl_->faults->List().size());
  }
  return report;
}

JobTotalsReport Service::JobTotals() const {
  return impl_->parts->runner->ends().totals().Report();
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

std::vector<std::string> Service::SlowModels() const {
  return impl_->parts->models->SlowModels();
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
    AddSramSaved(session->contexts(), &report, &known);
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
    report.unshared_total += session->contexts().UnsharedModelBytes();
  }
  return report;
}

}  // namespace rknnd::core
