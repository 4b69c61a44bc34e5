// Where the bytes of loaded models outlive this process, so that a client whose
// daemon was restarted need not send them again. The registry asks; the service
// manager's fd store is behind it (daemon/process/fd_store.h).

#ifndef DAEMON_CORE_MODELS_MODEL_KEEPER_H_
#define DAEMON_CORE_MODELS_MODEL_KEEPER_H_

#include <cstdint>
#include <optional>
#include <string>

#include "base/posix/unique_fd.h"
#include "daemon/core/terms/types.h"

namespace rknnd::core {

struct KeptModel {
  base::UniqueFd bytes;  // a sealed memfd; its hash is yet to be checked
  uint64_t size = 0;
  std::string name, options;
};

// Thread: loop.
class ModelKeeper {
 public:
  virtual ~ModelKeeper() = default;

  // A model was loaded from these immutable bytes: kept from now on, if there
  // is room. `bytes` is borrowed for the call.
  virtual void Keep(const ModelId& id, int bytes, uint64_t size,
                    const std::string& name, const std::string& options) = 0;
  // What a daemon before this one kept. Once: the model stays kept until LetGo.
  virtual std::optional<KeptModel> Take(const ModelId& id) = 0;
  // The model is not loaded any more, or its bytes were of no use.
  virtual void LetGo(const ModelId& id) = 0;
};

}  // namespace rknnd::core

#endif  // DAEMON_CORE_MODELS_MODEL_KEEPER_H_
