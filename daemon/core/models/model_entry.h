// What the registry knows of one model: for the files of model_registry*.cc,
// two of which change it and one of which tells of it.

#ifndef DAEMON_CORE_MODELS_MODEL_ENTRY_H_
#define DAEMON_CORE_MODELS_MODEL_ENTRY_H_

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "daemon/core/models/load_turns.h"
#include "daemon/core/models/loaded_model.h"
#include "daemon/core/models/model_load.h"
#include "daemon/core/models/model_registry.h"
#include "daemon/core/terms/types.h"

namespace rknnd::core {

// Thread: loop.
struct ModelEntry {
  std::pair<ModelId, uint64_t> key;
  ModelState state = ModelState::kLoading;
  std::shared_ptr<const LoadedModel> model;  // kResident, kGrace
  uint32_t uses = 0;
  bool used = false;  // some context had it
  uint64_t loads = 0;
  uint32_t reach = 0;
  uint64_t timer = 0;  // kGrace
  uint64_t grace = 0;  // kGrace: since when, in the order of such periods
  std::string payer;   // in whose turn it was loaded
  // kLoading: what is tried when the attempt under way fails, and who waits.
  std::deque<std::shared_ptr<ModelLoad>> attempts;
  std::vector<ModelRegistry::UseCallback> waiters;
  // Of the attempt under way; who joins it may have an earlier turn.
  std::shared_ptr<LoadTurns::Work> turn;
  bool restores = false;  // it is one of the quick loader's
  // Who did so; of a loaded one that nobody has used yet, all who asked for it.
  std::vector<LoadPayer> askers;

  [[nodiscard]] bool HasLostAskers() const {
    return !askers.empty() &&
           std::all_of(askers.begin(), askers.end(),
                       [](const LoadPayer& asker) { return asker.gone(); });
  }
};

// What somebody hears who asks for a model whose bytes the daemon does not
// have.
absl::Status NotLoaded(const ModelId& id);

}  // namespace rknnd::core

#endif  // DAEMON_CORE_MODELS_MODEL_ENTRY_H_
