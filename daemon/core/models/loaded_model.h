// A model as contexts and jobs hold it: compiled once, whoever asks.

#ifndef DAEMON_CORE_MODELS_LOADED_MODEL_H_
#define DAEMON_CORE_MODELS_LOADED_MODEL_H_

#include <algorithm>
#include <bit>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "daemon/core/accounts/use_counters.h"
#include "daemon/core/models/run_times.h"
#include "daemon/core/models/weight_charges.h"
#include "daemon/core/terms/types.h"
#include "driver/device.h"

namespace rknnd::core {

// Immutable; freed with its last holder, which may be a job on a worker.
// Thread: any.
struct LoadedModel {
  LoadedModel() = default;
  LoadedModel(const LoadedModel&) = delete;
  LoadedModel& operator=(const LoadedModel&) = delete;
  ~LoadedModel() {
    if (charges != nullptr) charges->Leave(std::move(model));
  }

  ModelId id{};
  std::string name;
  std::shared_ptr<WeightCharges> charges;  // that its weights are in, or null
  std::unique_ptr<driver::Model> model;
  // What contexts that never run keep of it, once for all of them
  // (DescriptionOf). Thread: loop.
  mutable std::weak_ptr<const LoadedModel> description;

  // By shape row; made by the registry with the model.
  mutable std::vector<RunTimes> run_times;
  // What the jobs of all its contexts cost.
  mutable UseCounters use;

  [[nodiscard]] const driver::ModelInfo& info() const { return model->info(); }
  // What is told of the model where no row of shapes is chosen: the largest.
  // The registry loads no model without one.
  [[nodiscard]] const driver::ProgramInfo& program() const {
    return program(info().largest);
  }
  [[nodiscard]] const driver::ProgramInfo& program(uint32_t row) const {
    return info().programs[row];
  }
  // Whether it lists several rows: one must be chosen before a run.
  [[nodiscard]] bool dynamic() const { return info().programs.size() > 1; }
  // What a run on so many cores is expected to take: as measured lately, else
  // what the device expects, else by the SoC's timing model, else what a
  // camera's model takes.
  [[nodiscard]] base::Nanoseconds expected_run(uint32_t row,
                                               uint32_t core_mask) const {
    if (row < run_times.size()) {
      const base::Nanoseconds run = run_times[row].measured(core_mask);
      if (run > 0) return run;
    }
    constexpr base::Nanoseconds kUnknown = 10 * base::kMillisecond;
    const driver::ProgramInfo& one = program(row);
    const base::Nanoseconds slice =
        one.expected > 0 ? one.expected : one.modelled;
    if (slice <= 0) return kUnknown;
    const auto cores =
        static_cast<uint32_t>(std::max(1, std::popcount(core_mask)));
    // Layers are shared out, slices go one to a core.
    if (one.batch <= 1) return slice / cores + 1;
    constexpr base::Nanoseconds kLongest = 3600 * base::kSecond;
    const uint32_t rounds = (one.batch - 1) / cores + 1;
    return slice > kLongest / rounds ? kLongest : slice * rounds;
  }
  // Internal memory that suffices for each of its rows.
  [[nodiscard]] uint64_t internal_size() const {
    uint64_t size = 0;
    for (const driver::ProgramInfo& row : info().programs) {
      size = std::max(size, row.internal_size);
    }
    return size;
  }
};

}  // namespace rknnd::core

#endif  // DAEMON_CORE_MODELS_LOADED_MODEL_H_
