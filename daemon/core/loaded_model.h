// A model as contexts and jobs hold it: compiled once, whoever asks.

#ifndef DAEMON_CORE_LOADED_MODEL_H_
#define DAEMON_CORE_LOADED_MODEL_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>

#include "daemon/core/ledger.h"
#include "daemon/core/types.h"
#include "driver/device.h"

namespace rknnd::core {

// Immutable; freed with its last holder, which may be a job on a worker.
// Thread: any.
struct LoadedModel {
  ModelId id{};
  std::string name;
  Charge weights;
  std::unique_ptr<driver::Model> model;

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

#endif  // DAEMON_CORE_LOADED_MODEL_H_
