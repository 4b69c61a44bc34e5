// Reports of the service as messages. Called on the loop.

#include <algorithm>
#include <cstring>
#include <iterator>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/core/terms/status_numbers.h"
#include "daemon/transport/session/translate.h"

namespace rknnd::transport {
namespace {

wire::ModelReport ToModelReport(const core::ModelReport& report) {
  wire::ModelReport out{};
  std::memcpy(out.sha256, report.id.data(), report.id.size());
  wire::SetText(out.name, report.name);
  out.contexts = report.contexts;
  out.weight = report.weight;
  out.internal = report.internal;
  out.loads = report.loads;
  out.weight_held = report.weight_held;
  out.preloaded = report.preloaded;
  out.jobs = report.jobs;
  out.npu_us = report.npu_us;
  out.queue_us = report.queue_us;
  out.drops = report.drops;
  out.run_ns = static_cast<uint64_t>(report.run);
  wire::SetText(out.run_by, report.run_by);
  wire::SetText(out.run_by_because, report.run_by_because);
  return out;
}

wire::ContextReport ToContextReport(const core::ContextReport& report) {
  wire::ContextReport out{};
  out.id = report.id;
  out.session = report.session;
  std::memcpy(out.model, report.model.data(), report.model.size());
  out.core_mask = report.core_mask;
  out.priority = static_cast<uint32_t>(report.priority);
  out.jobs = report.jobs;
  out.has_copied = true;
  out.copied = {report.copied.to_device_inputs_set,
                report.copied.to_device_conversion,
                report.copied.from_device_outputs_get,
                report.copied.from_device_conversion};
  out.npu_us = report.npu_us;
  out.queue_us = report.queue_us;
  out.drops = report.drops;
  out.queued = report.queued;
  out.policy = static_cast<uint32_t>(report.policy);
  out.rate_mhz = report.rate_mhz;
  return out;
}

wire::CoreReport ToCoreReport(const core::CoreReport& report) {
  wire::CoreReport out{};
  out.busy_ns = static_cast<uint64_t>(report.busy);
  out.jobs = report.jobs;
  wire::SetText(out.lent_to, report.lent_to);
  wire::SetText(out.model, report.model);
  out.session = report.session;
  out.running_ns = static_cast<uint64_t>(report.running);
  wire::SetText(out.holder, report.holder);
  return out;
}

wire::ForeignUser ToForeignUser(const core::ForeignUser& user) {
  wire::ForeignUser out{};
  out.pid = user.pid;
  wire::SetText(out.comm, user.comm);
  wire::SetText(out.device, user.device);
  return out;
}

wire::BufferReport ToBufferReport(const core::BufferReport& report) {
  wire::BufferReport out{};
  out.id = report.id;
  out.session = report.session;
  out.size = report.size;
  wire::SetText(out.heap, report.heap);
  out.imported = report.imported;
  out.bindings = report.bindings;
  return out;
}

wire::SramWindow ToSramWindow(const core::SramReport::Window& window) {
  wire::SramWindow out{};
  out.offset = window.offset;
  out.size = window.size;
  wire::SetText(out.holder, window.holder);
  out.core_mask = window.core_mask;
  out.contexts = window.contexts;
  out.saved = window.saved;
  return out;
}

wire::UserReport ToUserReport(const core::UserReport& report) {
  wire::UserReport out{};
  out.uid = report.uid;
  out.sessions = report.sessions;
  out.contexts = report.contexts;
  out.buffers = report.buffers;
  out.memory = report.memory;
  out.memory_limit = report.memory_limit;
  return out;
}

wire::MemoryKinds ToMemoryKinds(const core::MemoryKinds& kinds) {
  return {kinds.weight, kinds.internal, kinds.io, kinds.other};
}

template <class To, class From>
std::vector<To> Each(const std::vector<From>& from,
                     To (*translate)(const From&)) {
  std::vector<To> out;
  out.reserve(from.size());
  for (const From& item : from) out.push_back(translate(item));
  return out;
}

void FillStatus(const core::StatusReport& status, wire::Report& report) {
  wire::SetText(report.device, status.device.kind);
  wire::SetText(report.soc, status.device.soc);
  report.cores = status.device.cores;
  wire::SetText(report.driver, status.device.driver);
  report.uptime_s = static_cast<uint64_t>(status.uptime / base::kSecond);
  report.session_count = status.sessions;
  report.model_count = status.models;
  report.context_count = status.contexts;
  report.buffer_count = status.buffers;
  report.jobs_queued = status.jobs_queued;
  report.jobs_running = status.jobs_running;
  report.jobs_done = status.jobs_done;
  report.jobs_failed = status.jobs_failed;
  report.memory = ToMemoryKinds(status.memory);
  report.sram_total = status.device.sram_total;
  report.sram_free = status.sram_free;
  report.faults = status.faults;
  report.syncs_done = status.cache_syncs.done;
  report.syncs_skipped = status.cache_syncs.skipped;
  report.uptime_ns = static_cast<uint64_t>(status.uptime);
  report.core_reports = Each(status.cores, &ToCoreReport);
  report.jobs_dropped = status.jobs_dropped;
  report.jobs_shared = status.jobs_shared;
  report.jobs_hung = status.jobs_hung;
  report.foreign_users = Each(status.foreign_users, &ToForeignUser);
  report.admitted_ppm = status.admitted_ppm;
  report.draining = status.draining;
  report.cores_hung = status.cores_hung;
  for (const core::StatusNumber& number : core::StatusNumbers()) {
    wire::Number& added = report.numbers.emplace_back();
    wire::SetText(added.name, number.name);
    wire::SetText(added.help, number.help);
    added.value = number.value(status);
  }
}

}  // namespace

wire::SessionReport ToSessionReport(const core::SessionReport& report) {
  wire::SessionReport out{};
  out.id = report.id;
  out.pid = report.peer.pid;
  out.uid = report.peer.uid;
  wire::SetText(out.comm, report.peer.comm);
  wire::SetText(out.address, report.peer.address);
  wire::SetText(out.unit, report.peer.unit);
  wire::SetText(out.container, report.peer.container);
  if (report.peer.allocation != nullptr) {
    wire::SetText(out.allocation, report.peer.allocation->name);
  }
  out.contexts = report.contexts;
  out.buffers = report.buffers;
  out.jobs = report.jobs;
  out.npu_us = report.npu_us;
  out.memory = report.memory;
  out.queue_us = report.queue_us;
  out.run_us = report.run_us;
  out.drops = report.drops;
  out.shared = report.shared;
  out.priority = static_cast<uint32_t>(report.share.ceiling);
  out.weight = report.share.weight;
  out.latency_count = static_cast<pb_size_t>(
      std::min(report.latency.size(), std::size(out.latency)));
  std::copy_n(report.latency.begin(), out.latency_count, out.latency);
  return out;
}

absl::StatusOr<wire::Report> MakeReport(const core::Service& service,
                                        uint32_t kind) {
  wire::Report report;
  switch (kind) {
    case rknnd_v1_ReportKind_REPORT_STATUS:
      FillStatus(service.Status(), report);
      return report;
    case rknnd_v1_ReportKind_REPORT_SESSIONS:
      report.sessions = Each(service.Sessions(), &ToSessionReport);
      return report;
    case rknnd_v1_ReportKind_REPORT_MODELS:
      report.models = Each(service.Models(), &ToModelReport);
      return report;
    case rknnd_v1_ReportKind_REPORT_CONTEXTS:
      report.contexts = Each(service.Contexts(), &ToContextReport);
      return report;
    case rknnd_v1_ReportKind_REPORT_BUFFERS:
      report.buffers = Each(service.Buffers(), &ToBufferReport);
      return report;
    case rknnd_v1_ReportKind_REPORT_MEMORY: {
      const core::MemoryReport memory = service.Memory();
      FillStatus(service.Status(), report);
      report.memory = ToMemoryKinds(memory.kinds);
      report.models = Each(memory.models, &ToModelReport);
      report.sessions = Each(memory.sessions, &ToSessionReport);
      report.unshared_total = memory.unshared_total;
      report.budget = memory.budget;
      report.budget_used = memory.budget_used;
      report.users = Each(memory.users, &ToUserReport);
      return report;
    }
    case rknnd_v1_ReportKind_REPORT_SRAM: {
      const core::SramReport sram = service.Sram();
      FillStatus(service.Status(), report);
      report.sram_base = sram.base;
      report.sram_windows = Each(sram.windows, &ToSramWindow);
      return report;
    }
    default:
      return absl::InvalidArgumentError(
          absl::StrCat("report '", kind, "' is unknown to this daemon"));
  }
}

}  // namespace rknnd::transport
