// What the registry tells of the models it holds: reports, and what arenas and
// admission ask. All on the loop; changes nothing.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "daemon/core/models/model_entry.h"
#include "daemon/core/models/model_registry.h"
#include "daemon/core/models/preloaded_models.h"
#include "daemon/core/models/slow_layers.h"

namespace rknnd::core {

std::vector<uint64_t> ModelRegistry::ArenaNeeds(uint32_t cores) const {
  std::vector<uint64_t> needs(cores, 0);
  const auto add = [&](const ModelEntry& entry) {
    if (entry.model == nullptr) return;
    for (uint32_t core = 0; core < cores; ++core) {
      if ((entry.reach >> core & 1) == 0) continue;
      needs[core] = std::max(needs[core], entry.model->internal_size());
    }
  };
  for (const auto& [key, entry] : entries_) add(*entry);
  for (const auto& entry : failed_) add(*entry);
  return needs;
}

uint64_t ModelRegistry::LoadedBy(const std::string& payer) const {
  return static_cast<uint64_t>(
      std::count_if(entries_.begin(), entries_.end(), [&](const auto& one) {
        return one.second->model != nullptr && one.second->payer == payer;
      }));
}

std::vector<std::string> ModelRegistry::SlowModels() const {
  std::vector<std::string> found;
  for (const auto& [key, entry] : entries_) {
    if (entry->model == nullptr) continue;
    std::string text =
        SlowLayersFound(entry->model->name, entry->model->info());
    if (!text.empty()) found.push_back(std::move(text));
  }
  return found;
}

std::vector<ModelReport> ModelRegistry::Reports() const {
  std::vector<ModelReport> reports;
  for (const auto& [key, entry] : entries_) {
    if (entry->model == nullptr) continue;
    ModelReport report;
    report.id = key.first;
    report.name = entry->model->name;
    report.contexts = entry->uses;
    const uint32_t kept = preloaded_->UsesOf(*entry->model);
    report.contexts -= kept;
    report.preloaded = kept > 0;
    report.weight = entry->model->info().weight_size;
    report.weight_held = entry->model->model->held_weights();
    report.internal = entry->model->internal_size();
    report.loads = entry->loads;
    const driver::ModelInfo& info = entry->model->info();
    report.run_by = info.runnable.ok() ? info.run_by : "none";
    report.run_by_because = info.runnable.ok()
                                ? info.run_by_because
                                : std::string(info.runnable.message());
    const LoadedModel& model = *entry->model;
    report.jobs = model.use.jobs();
    report.npu_us = model.use.npu_us();
    report.queue_us = model.use.queue_us();
    report.drops = model.use.drops();
    // Of its largest shape, on as few cores as it was run on.
    const RunTimes& times = model.run_times[model.info().largest];
    for (uint32_t cores = 1; report.run == 0 && cores < 256;
         cores = cores << 1 | 1) {
      report.run = times.measured(cores);
    }
    reports.push_back(std::move(report));
  }
  return reports;
}

std::shared_ptr<const LoadedModel> ModelRegistry::Resident(
    const ModelId& id) const {
  for (auto entry = entries_.lower_bound({id, 0});
       entry != entries_.end() && entry->first.first == id; ++entry) {
    if (entry->second->model != nullptr) return entry->second->model;
  }
  return nullptr;
}

uint32_t ModelRegistry::count() const {
  uint32_t count = 0;
  for (const auto& [key, entry] : entries_) count += entry->model != nullptr;
  return count;
}

}  // namespace rknnd::core
