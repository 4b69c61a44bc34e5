// Shares out the NPU's SRAM among contexts as they are made.

#include "daemon/core/sessions/context_sram.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"

namespace rknnd::core {
namespace {

std::string Kib(uint64_t bytes) { return absl::StrCat(bytes / 1024, " KiB"); }

// "956 KiB are held by context 1 of session 2 (pid 7 'x')", the largest holder.
std::string WhoHolds(const Sram& sram) {
  const std::vector<SramReport::Window> windows = sram.windows();
  const auto largest = std::max_element(
      windows.begin(), windows.end(),
      [](const auto& a, const auto& b) { return a.size < b.size; });
  if (largest == windows.end()) return "nothing is held";
  return absl::StrCat("of the rest ", Kib(largest->size), " are held by ",
                      largest->holder);
}

}  // namespace

SramLease TakeSram(const ServiceParts& parts, const SramAsker& asker,
                   const ContextTraits& traits, const LoadedModel& model,
                   uint32_t cores) {
  if (!traits.sram || traits.info_only) return {};
  const auto log = [&asker](uint32_t level, const std::string& text) {
    if (asker.log != nullptr) asker.log->Log(level, text);
  };
  const std::string name = absl::StrCat("context ", traits.number);
  const driver::DeviceInfo& device = parts.device->info();
  if (device.sram_total == 0) {
    log(kLogWarning, absl::StrCat(name, " has no SRAM: ", device.soc,
                                  " has none for its NPU; it runs from DRAM"));
    return {};
  }
  if (traits.internal_outside) {
    // SRAM would be a part of the memory that the program brings.
    log(kLogWarning,
        absl::StrCat(name,
                     " has no SRAM: its internal memory is the program's "
                     "own, which may have RKNN_FLAG_MEMORY_TRY_ALLOC_SRAM"));
    return {};
  }
  // For each of its shapes, as internal memory is.
  uint64_t useful = 0;
  for (const driver::ProgramInfo& row : model.info().programs) {
    useful = std::max(useful, row.sram.used);
  }
  uint64_t wanted = useful;
  if (asker.limit != 0) {
    wanted =
        std::min(wanted, asker.limit / driver::kSramPage * driver::kSramPage);
  }
  Sram& sram = *parts.sram;
  // Where SRAM really holds internal memory, that is the core's.
  const bool share =
      (traits.share_sram && !parts.vendor_sharing) || device.core_sram > 0;
  SramLease lease =
      share ? sram.Share(wanted, cores)
            : sram.Take(wanted, absl::StrCat(name, " of ", asker.holder));
  const SramWindow window = lease.window();
  std::string text = absl::StrCat(name, share ? " takes turns in " : " has ",
                                  Kib(window.bytes), " of SRAM, of ",
                                  Kib(useful), " that its model can use");
  if (window.bytes < wanted) {
    absl::StrAppend(&text, ": ", WhoHolds(sram), "; the rest is in DRAM");
  }
  log(window.bytes < wanted ? kLogWarning : kLogInfo, text);
  return lease;
}

void AddSramSaved(const ContextTable& contexts, SramReport* report,
                  SramForecasts* known) {
  for (const auto& [number, context] : contexts.all()) {
    const uint64_t bytes = context.sram.bytes();
    if (bytes == 0) continue;
    if (context.saved_with != bytes) {
      const LoadedModel& model = *context.run->model();
      const auto [forecast, is_new] = known->try_emplace({&model, bytes}, 0);
      if (is_new) {
        forecast->second =
            model.model->PlanSram(model.info().largest, bytes).saved;
      }
      context.saved_with = bytes;
      context.saved = forecast->second;
    }
    const uint32_t cores = context.sram.cores();
    const uint64_t offset = context.sram.window().offset;
    for (SramReport::Window& window : report->windows) {
      if (cores == 0 ? window.core_mask == 0 && window.offset == offset
                     : (window.core_mask & cores) != 0) {
        window.saved = std::max(window.saved, context.saved);
      }
    }
  }
}

}  // namespace rknnd::core
