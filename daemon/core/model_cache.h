// Model bytes on disk, by hash, so that clients survive the daemon's restart.
// Used by the registry on the loader thread. What a file holds is checked
// against its name whenever it is read.

#ifndef DAEMON_CORE_MODEL_CACHE_H_
#define DAEMON_CORE_MODEL_CACHE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/posix/mapping.h"
#include "daemon/core/types.h"

namespace rknnd::core {

// The hash by which a model is known.
ModelId IdOf(std::span<const std::byte> bytes, const std::string& options);

// A file <hex of the id>.model is
//
//   bytes | options | name | trailer (magic and the three sizes)
//
// so that the id is the hash of its beginning, and bytes start aligned.
//
// Thread: worker (the loader; one at a time), but Contains: any.
class ModelCache {
 public:
  struct Entry {
    [[nodiscard]] std::span<const std::byte> bytes() const {
      return memory.bytes().first(size);
    }
    base::Mapping memory;
    size_t size = 0;
    std::string options;
    std::string name;
  };

  // Makes the folder if it is missing, and clears away what a killed daemon
  // was writing. At most `limit` bytes are kept.
  static absl::StatusOr<std::unique_ptr<ModelCache>> Open(
      const std::string& folder, uint64_t limit);

  [[nodiscard]] bool Contains(const ModelId& id) const;

  // NOT_FOUND; DATA_LOSS when the file is not what its name says: it is
  // removed.
  absl::StatusOr<Entry> Read(const ModelId& id);

  // Atomic. Removes the files that were unused longest to make room.
  absl::Status Store(const ModelId& id, std::span<const std::byte> bytes,
                     const std::string& options, const std::string& name);

 private:
  ModelCache(std::string folder, uint64_t limit);
  [[nodiscard]] std::string PathOf(const ModelId& id) const;
  absl::Status MakeRoom(uint64_t bytes);

  const std::string folder_;
  const uint64_t limit_;
};

}  // namespace rknnd::core

#endif  // DAEMON_CORE_MODEL_CACHE_H_
