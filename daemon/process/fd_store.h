// What the service manager keeps for rknnd while it is started again
// (FileDescriptorStoreMax= in its unit): sealed memfds with the bytes of loaded
// models. Made by main, asked by core's registry; without a service manager it
// keeps nothing.
//
// A model is two fds: model-<SHA-256> with the bytes, and about-<SHA-256>, a
// sealed memfd with its name, a line break and its options, which are a part of
// the hash. What comes back is not trusted: seals and sizes are checked here,
// the hash by the loader before anything is made of the bytes.

#ifndef DAEMON_PROCESS_FD_STORE_H_
#define DAEMON_PROCESS_FD_STORE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/posix/unique_fd.h"
#include "daemon/core/models/model_keeper.h"
#include "daemon/process/systemd.h"
#include "daemon/transport/session/event_log.h"

namespace rknnd {

// Thread: loop.
class FdStore final : public core::ModelKeeper {
 public:
  using Notify =
      std::function<void(const std::string& state, std::span<const int> fds)>;
  struct Limits {
    // Two fds each: the unit's FileDescriptorStoreMax= has room for them.
    size_t models = 100;
    // Their bytes stay in memory as long as they are kept.
    uint64_t bytes = uint64_t{512} << 20;
  };

  // Null `notify`: nobody keeps anything. `log` outlives it.
  FdStore(Notify notify, const Limits& limits, transport::EventLog* log)
      : notify_(std::move(notify)), limits_(limits), log_(log) {}

  // Whether `name` is one of a model's two.
  static bool IsModel(const std::string& name);

  // What a daemon before this one stored.
  void Adopt(std::vector<PassedFd> models);
  // Those of them that nobody has asked for meanwhile go.
  void DropUnused();

  // Anything else that is to come back under this name. Borrowed.
  void Store(const std::string& name, int fd);
  void Remove(const std::string& name);
  [[nodiscard]] bool keeps() const { return notify_ != nullptr; }
  // What is kept now stays kept, whatever goes with this process.
  void Freeze() { frozen_ = true; }

  // The newest stay: older ones go where there is no room for it.
  void Keep(const core::ModelId& id, int bytes, uint64_t size,
            const std::string& name, const std::string& options) override;
  std::optional<core::KeptModel> Take(const core::ModelId& id) override;
  void LetGo(const core::ModelId& id) override;

 private:
  struct Kept {
    // Of one that was adopted and not taken yet; of all others the service
    // manager has the only ones.
    core::KeptModel model;
    uint64_t size = 0;
    uint64_t order = 0;  // later ones are newer
  };

  void Enter(const core::ModelId& id, Kept kept);
  void MakeRoom(uint64_t size);

  const Notify notify_;
  const Limits limits_;
  transport::EventLog* const log_;
  std::map<core::ModelId, Kept> kept_;
  uint64_t bytes_ = 0;  // of all of them
  uint64_t next_order_ = 1;
  bool frozen_ = false;
};

}  // namespace rknnd

#endif  // DAEMON_PROCESS_FD_STORE_H_
