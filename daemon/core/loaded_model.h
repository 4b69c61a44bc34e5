// A model as contexts and jobs hold it: compiled once, whoever asks.

#ifndef DAEMON_CORE_LOADED_MODEL_H_
#define DAEMON_CORE_LOADED_MODEL_H_

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
  // The shape row that jobs run. The registry loads no model without one.
  [[nodiscard]] const driver::ProgramInfo& program() const {
    return info().programs.front();
  }
};

}  // namespace rknnd::core

#endif  // DAEMON_CORE_LOADED_MODEL_H_
