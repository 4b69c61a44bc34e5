// The models that the configuration names: read from their files, loaded in a
// turn of their own, and kept until it does not name them any more.

#ifndef DAEMON_CORE_MODELS_PRELOADED_MODELS_H_
#define DAEMON_CORE_MODELS_PRELOADED_MODELS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/posix/event_loop.h"
#include "daemon/core/models/model_load.h"
#include "daemon/core/models/model_registry.h"
#include "daemon/core/terms/presence.h"
#include "daemon/core/terms/types.h"

namespace rknnd::core {

// Thread: loop.
class PreloadedModels {
 public:
  // In whose turn they are loaded.
  static const LoadPayer& Payer();

  // `registry` owns it. Files are read by `loader`; `log`: the daemon's own, or
  // null.
  PreloadedModels(ModelRegistry* registry, base::Executor* loop,
                  base::Executor* loader, LogSink* log);

  // Loads the models' files, of at most so many bytes each, and keeps them as
  // long as this is not called with others. Those that could not be loaded are
  // tried again. What is wrong with one is logged.
  void Set(const std::vector<std::string>& paths, uint64_t largest);
  // `model` cannot be used any more: if it is one of these, it is loaded again.
  void Renew(const LoadedModel& model);
  // Lets go of all; nothing is loaded from now on.
  void Stop();

  // By how many of the paths it is kept.
  [[nodiscard]] uint32_t UsesOf(const LoadedModel& model) const;

 private:
  void Read(const std::string& path, uint64_t largest);
  void OnRead(const std::string& path,
              absl::StatusOr<std::shared_ptr<ModelLoad>> read);
  void Keep(const std::string& path, const ModelId& id);
  void Tell(const std::string& path, const absl::Status& status) const;

  ModelRegistry* const registry_;
  base::Executor* const loop_;
  base::Executor* const loader_;
  LogSink* const log_;
  // By path; no use yet of those that are being loaded, or failed.
  std::map<std::string, std::optional<ModelUse>> uses_;
  Presence presence_;
};

}  // namespace rknnd::core

#endif  // DAEMON_CORE_MODELS_PRELOADED_MODELS_H_
