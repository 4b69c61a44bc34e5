// What a session is told of its contexts' runs: layer times, memory, dumps.
// Called on the loop with numbers a client chose.

#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/core/reports/memory_report.h"
#include "daemon/core/reports/perf_report.h"
#include "daemon/core/sessions/session_impl.h"

namespace rknnd::core {

absl::StatusOr<std::string> SessionImpl::PerfDetail(uint32_t context) const {
  const Context* found = FindContext(context);
  if (found == nullptr) return NoContext(context);
  return PerfText(*found->run, parts_->device->info());
}

absl::StatusOr<std::vector<LayerRow>> SessionImpl::PerfLayers(
    uint32_t context) const {
  const Context* found = FindContext(context);
  if (found == nullptr) return NoContext(context);
  return LastRows(*found->run, parts_->device->info());
}

absl::StatusOr<std::span<const driver::LayerInfo>> SessionImpl::ModelLayers(
    uint32_t context) const {
  const Context* found = FindContext(context);
  if (found == nullptr) return NoContext(context);
  return std::span(
      found->run->model()->program(found->bindings.first().row()).layers);
}

absl::StatusOr<std::string> SessionImpl::ModelDetail(uint32_t context) const {
  const Context* found = FindContext(context);
  if (found == nullptr) return NoContext(context);
  const LoadedModel& model = *found->run->model();
  const uint32_t row = found->bindings.first().row();
  if (!found->run->traits().sram) {
    return ModelText(model.info(), model.program(row), nullptr, 0,
                     parts_->device->info());
  }
  const SramWindow window = found->sram.window();
  const driver::SramPlan sram = model.model->PlanSram(row, window.bytes);
  return ModelText(model.info(), model.program(row), &sram, window.offset,
                   parts_->device->info());
}

absl::Status SessionImpl::ArmDump(uint32_t context) {
  if (absl::Status open = RequireOpen(); !open.ok()) return open;
  const Context* found = FindContext(context);
  if (found == nullptr) return NoContext(context);
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

absl::StatusOr<DumpReport> SessionImpl::TakeDump(uint32_t context) {
  const Context* found = FindContext(context);
  if (found == nullptr) return NoContext(context);
  const std::shared_ptr<LayerDump> last = found->run->last_dump();
  if (last == nullptr) {
    return absl::FailedPreconditionError(absl::StrCat(
        "context ", context,
        " has no dump: ask for one, and run the context before it is taken"));
  }
  auto dump = last->Take();
  if (!dump.ok()) return dump.status();
  return DumpReport{*std::move(dump),
                    &found->run->model()->program(last->row())};
}

}  // namespace rknnd::core
