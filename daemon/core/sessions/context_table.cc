// Finds a session's contexts, and answers what is asked about them.

#include "daemon/core/sessions/context_table.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status/status.h"
#include "daemon/core/reports/memory_report.h"

namespace rknnd::core {

uint64_t ContextTable::Expect(uint32_t number) {
  return expected_[number] = NewToken();
}

bool ContextTable::IsExpected(uint32_t number, uint64_t token) const {
  const auto found = expected_.find(number);
  return found != expected_.end() && found->second == token;
}

bool ContextTable::TakeExpected(uint32_t number, uint64_t token) {
  return IsExpected(number, token) && expected_.erase(number) != 0;
}

void ContextTable::Add(uint32_t number, Context context) {
  contexts_[number] = std::move(context);
}

void ContextTable::Drop(uint32_t number) {
  expected_.erase(number);
  contexts_.erase(number);
}

void ContextTable::Clear() {
  expected_.clear();
  contexts_.clear();
}

Context* ContextTable::Find(uint32_t number) {
  const auto found = contexts_.find(number);
  return found == contexts_.end() ? nullptr : &found->second;
}

const Context* ContextTable::Find(uint32_t number) const {
  const auto found = contexts_.find(number);
  return found == contexts_.end() ? nullptr : &found->second;
}

absl::StatusOr<const Context*> ContextTable::Get(uint32_t number) const {
  if (const Context* found = Find(number)) return found;
  return absl::NotFoundError(
      absl::StrCat("context ", number, " does not exist in this session"));
}

absl::StatusOr<Context*> ContextTable::Get(uint32_t number) {
  if (Context* found = Find(number)) return found;
  return std::as_const(*this).Get(number).status();
}

absl::StatusOr<Context*> ContextTable::GetForBinding(uint32_t number) {
  RKNND_ASSIGN_OR_RETURN(Context* const found, Get(number));
  if (!found->run->traits().info_only) return found;
  return absl::FailedPreconditionError(
      absl::StrCat("context ", number,
                   " was made with RKNN_FLAG_COLLECT_MODEL_INFO_ONLY: memory "
                   "cannot be bound to it"));
}

bool ContextTable::IsThere(uint32_t number) const {
  return contexts_.contains(number);
}

bool ContextTable::IsTaken(uint32_t number) const {
  return IsThere(number) || expected_.contains(number);
}

uint32_t ContextTable::size() const {
  return static_cast<uint32_t>(contexts_.size());
}

uint32_t ContextTable::taken() const {
  return static_cast<uint32_t>(contexts_.size() + expected_.size());
}

absl::StatusOr<std::string> ContextTable::PerfDetail(uint32_t number) const {
  RKNND_ASSIGN_OR_RETURN(const Context* const found, Get(number));
  return PerfText(*found->run, device_);
}

absl::StatusOr<std::vector<LayerRow>> ContextTable::PerfLayers(
    uint32_t number) const {
  RKNND_ASSIGN_OR_RETURN(const Context* const found, Get(number));
  return LastRows(*found->run, device_);
}

absl::StatusOr<std::span<const driver::LayerInfo>> ContextTable::ModelLayers(
    uint32_t number) const {
  RKNND_ASSIGN_OR_RETURN(const Context* const found, Get(number));
  return std::span(
      found->run->model()->program(found->bindings.first().row()).layers);
}

absl::StatusOr<std::string> ContextTable::ModelDetail(uint32_t number) const {
  RKNND_ASSIGN_OR_RETURN(const Context* const found, Get(number));
  const LoadedModel& model = *found->run->model();
  const uint32_t row = found->bindings.first().row();
  if (!found->run->traits().sram) {
    return ModelText(model.info(), model.program(row), nullptr, 0, device_);
  }
  const SramWindow window = found->sram.window();
  const driver::SramPlan sram = model.model->PlanSram(row, window.bytes);
  return ModelText(model.info(), model.program(row), &sram, window.offset,
                   device_);
}

absl::StatusOr<DumpReport> ContextTable::TakeDump(uint32_t number) const {
  RKNND_ASSIGN_OR_RETURN(const Context* const found, Get(number));
  const std::shared_ptr<LayerDump> last = found->run->last_dump();
  if (last == nullptr) {
    return absl::FailedPreconditionError(absl::StrCat(
        "context ", number,
        " has no dump: ask for one, and run the context before it is taken"));
  }
  auto dump = last->Take();
  if (!dump.ok()) return dump.status();
  return DumpReport{*std::move(dump),
                    &found->run->model()->program(last->row())};
}

void ContextTable::AppendStreams(uint32_t but,
                                 std::vector<Stream>* streams) const {
  for (const auto& [number, context] : contexts_) {
    if (number == but || !context.stream.has_value()) continue;
    const KeptStream& kept = *context.stream;
    const LoadedModel& model = *context.run->model();
    // A mask that was changed since may name other cores.
    const auto cores = ResolveCoreMask(
        kept.core_mask == 0 ? context.core_mask : kept.core_mask, device_);
    if (!cores.ok()) continue;
    Stream& stream = streams->emplace_back();
    stream.model = model.name;
    stream.cores = *cores;
    stream.priority = kept.priority;
    stream.rate_mhz = kept.rate_mhz;
    stream.run = EstimateRun(model, RowOf(context), *cores).run;
  }
}

uint64_t ContextTable::UnsharedModelBytes() const {
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

uint32_t RowOf(const Context& context) {
  const BindingSet& bindings = context.bindings.first();
  return bindings.chosen() ? bindings.row()
                           : context.run->model()->info().largest;
}

}  // namespace rknnd::core
