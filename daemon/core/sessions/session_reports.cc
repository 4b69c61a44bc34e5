// What a session answers about itself, to its client and to reports. Called on
// the loop.

#include <map>

#include "absl/strings/str_cat.h"
#include "base/status/status.h"
#include "daemon/core/contexts/layer_dump.h"
#include "daemon/core/sessions/session.h"

namespace rknnd::core {

// ---- questions --------------------------------------------------------------

absl::StatusOr<MemorySize> Session::GetMemorySize(uint32_t context) const {
  RKNND_ASSIGN_OR_RETURN(const Context* const found, contexts_.Get(context));
  const LoadedModel& model = *found->run->model();
  MemorySize size;
  size.weight = model.info().weight_size;
  size.internal = model.internal_size();
  // What the process has of its own, and what its models take, each once.
  size.dma_total = NpuBytes(account_->held());
  std::map<const LoadedModel*, bool> models;  // and whether some context runs
  for (const auto& [number, other] : contexts_.all()) {
    // Keeps no weights, and what it tells of is no model of its own.
    if (other.run->traits().info_only) continue;
    models[other.run->model().get()] |=
        NeedsArena(other.run->traits(), *other.run->model());
  }
  for (const auto& [used, runs] : models) {
    size.dma_total += used->info().weight_size;
    if (runs) size.dma_total += used->internal_size();
  }
  size.sram_total = parts_->device->info().sram_total;
  size.sram_free = parts_->sram->free();
  return size;
}

absl::Status Session::ArmDump(uint32_t context) {
  RKNND_ASSIGN_OR_RETURN(const Context* const found, OpenContext(context));
  if (found->run->traits().info_only) {
    return absl::FailedPreconditionError(absl::StrCat(
        "context ", context,
        " was made with RKNN_FLAG_COLLECT_MODEL_INFO_ONLY and cannot run"));
  }
  auto dump = LayerDump::Create(*account_, parts_->limits.dump_bytes);
  if (!dump.ok()) return dump.status();
  found->run->ArmDump(*std::move(dump));
  return absl::OkStatus();
}

// ---- reports ----------------------------------------------------------------

SessionReport Session::Report() const {
  SessionReport report;
  report.id = id_;
  report.peer = peer_;
  report.contexts = contexts_.size();
  report.buffers = buffer_count();
  const UseCounters& use = gate_->jobs().use();
  report.jobs = use.jobs();
  report.npu_us = use.npu_us();
  report.queue_us = use.queue_us();
  report.run_us = use.run_us();
  report.drops = use.drops();
  report.shared = use.shared();
  // Counts go on from 0 after 2^32, as differences of them do not mind.
  for (const uint64_t count : gate_->jobs().latency().counts()) {
    report.latency.push_back(static_cast<uint32_t>(count));
  }
  report.memory = account_->held().total();
  report.share = share_->policy();
  return report;
}

void Session::AppendContexts(std::vector<ContextReport>* reports) const {
  for (const auto& [number, context] : contexts_.all()) {
    ContextReport report;
    report.id = number;
    report.session = id_;
    report.model = context.run->model()->id;
    report.core_mask = context.core_mask;
    report.priority = context.run->traits().priority;
    const UseCounters& use = context.run->use;
    report.jobs = use.jobs();
    report.npu_us = use.npu_us();
    report.queue_us = use.queue_us();
    report.drops = use.drops();
    report.queued = gate_->Waiting(number);
    report.policy = context.queue.policy;
    if (context.stream.has_value()) report.rate_mhz = context.stream->rate_mhz;
    const CopiedBytes client = gate_->jobs().ClientCopies(number);
    report.copied = context.run->conversions();
    report.copied.to_device_inputs_set = client.to_device_inputs_set;
    report.copied.from_device_outputs_get = client.from_device_outputs_get;
    reports->push_back(report);
  }
}

void Session::AppendBuffers(std::vector<BufferReport>* reports) const {
  for (const auto& [number, buffer] : buffers_.all()) {
    BufferReport report;
    report.id = number;
    report.session = id_;
    report.size = buffer->size();
    report.heap = buffer->heap();
    report.imported = buffer->imported();
    for (const auto& [unused, context] : contexts_.all()) {
      report.bindings += context.bindings.Count(buffer.get());
    }
    reports->push_back(std::move(report));
  }
}

}  // namespace rknnd::core
