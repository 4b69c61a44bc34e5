// What a session answers about itself, to its client and to reports. Called on
// the loop.

#include <map>

#include "daemon/core/sessions/session_impl.h"

namespace rknnd::core {

// ---- questions --------------------------------------------------------------

absl::StatusOr<MemorySize> SessionImpl::GetMemorySize(uint32_t context) const {
  const Context* found = FindContext(context);
  if (found == nullptr) return NoContext(context);
  const LoadedModel& model = *found->run->model();
  MemorySize size;
  size.weight = model.info().weight_size;
  size.internal = model.internal_size();
  // What the process has of its own, and what its models take, each once.
  size.dma_total = NpuBytes(account_->held());
  std::map<const LoadedModel*, bool> models;  // and whether some context runs
  for (const auto& [number, other] : contexts_) {
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

// ---- reports ----------------------------------------------------------------

SessionReport SessionImpl::Report() const {
  SessionReport report;
  report.id = id_;
  report.peer = peer_;
  report.contexts = context_count();
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

void SessionImpl::AppendContexts(std::vector<ContextReport>* reports) const {
  for (const auto& [number, context] : contexts_) {
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
    if (const auto kept = streams_.find(number); kept != streams_.end()) {
      report.rate_mhz = kept->second.rate_mhz;
    }
    const CopiedBytes client = gate_->jobs().ClientCopies(number);
    report.copied = context.run->conversions();
    report.copied.to_device_inputs_set = client.to_device_inputs_set;
    report.copied.from_device_outputs_get = client.from_device_outputs_get;
    reports->push_back(report);
  }
}

void SessionImpl::AppendBuffers(std::vector<BufferReport>* reports) const {
  for (const auto& [number, buffer] : buffers_.all()) {
    BufferReport report;
    report.id = number;
    report.session = id_;
    report.size = buffer->size();
    report.heap = buffer->heap();
    report.imported = buffer->imported();
    for (const auto& [unused, context] : contexts_) {
      report.bindings += context.bindings.Count(buffer.get());
    }
    reports->push_back(std::move(report));
  }
}

uint32_t SessionImpl::context_count() const {
  return static_cast<uint32_t>(contexts_.size());
}

uint32_t SessionImpl::buffer_count() const {
  return static_cast<uint32_t>(buffers_.all().size());
}

uint64_t SessionImpl::UnsharedModelBytes() const {
  uint64_t bytes = 0;
  for (const auto& [number, context] : contexts_) {
    const LoadedModel& model = *context.run->model();
    if (!model.info().runnable.ok()) continue;
    bytes += model.info().weight_size;
    // One that only answers queries never asks for internal memory.
    // And one that was given some has it among its buffers.
    if (NeedsArena(context.run->traits(), model)) {
      bytes += model.internal_size();
    }
  }
  return bytes;
}

}  // namespace rknnd::core
