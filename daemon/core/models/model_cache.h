// Models on disk, by hash: their bytes, so that clients survive the daemon's
// restart, and what the device compiled them to, so that loading them again
// takes little. Used by the registry on the loader thread. What a file holds is
// checked whenever it is read.

#ifndef DAEMON_CORE_MODELS_MODEL_CACHE_H_
#define DAEMON_CORE_MODELS_MODEL_CACHE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/posix/mapping.h"
#include "daemon/core/models/cache_disk.h"
#include "daemon/core/terms/types.h"

namespace rknnd::core {

// The hash by which a model is known.
ModelId IdOf(std::span<const std::byte> bytes, const std::string& options);

// A file <hex of the id>.model is
//
//   bytes | options | name | trailer (magic and the three sizes)
//
// so that the id is the hash of its beginning, and bytes start aligned. A file
// <hex of the id>.<hex of the compiler's hash>.compiled is
//
//   form | compiler | options | name | trailer (magic, id, the four sizes and a
//                                               checksum of all before it)
//
// Both are written under another name and renamed. Nothing is synchronised with
// the disk: a file that a power cut has spoilt is found out when it is read,
// and other models do not wait for the disk meanwhile.
//
// Thread: the loader. Of the others, ReadCompiled and RemoveCompiled may be
// called meanwhile, as files are complete when they have their names; and
// Contains... on any.
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

  // The compiled form, in the file's own pages.
  struct Compiled {
    std::shared_ptr<const base::Mapping> file;
    std::span<const std::byte> form;  // in it
    std::string options;
    std::string name;
  };
  using Write = absl::FunctionRef<absl::Status(std::span<const std::byte>)>;

  // Makes the folder if it is missing, and clears away what a killed daemon
  // was writing. At most `limit` bytes are kept. `compiler`
  // (DeviceInfo::compiler) is whose forms are read and written; "": none.
  // `disk` outlives the cache; null: the real one.
  static absl::StatusOr<std::unique_ptr<ModelCache>> Open(
      const std::string& folder, uint64_t limit,
      const std::string& compiler = "", CacheDisk* disk = nullptr);

  // Why nothing can be kept here, or OK: then what is there is read all the
  // same.
  [[nodiscard]] const absl::Status& writable() const { return writable_; }

  // The model's bytes.
  [[nodiscard]] bool Contains(const ModelId& id) const;
  // What this compiler made of it.
  [[nodiscard]] bool ContainsCompiled(const ModelId& id) const;

  // NOT_FOUND; DATA_LOSS when the file is not what its name says: it is
  // removed.
  absl::StatusOr<Entry> Read(const ModelId& id);

  // Atomic. Removes the files that were unused longest to make room.
  absl::Status Store(const ModelId& id, std::span<const std::byte> bytes,
                     const std::string& options, const std::string& name);

  // As Read; PERMISSION_DENIED when somebody else can write the file. The form
  // is still not to be trusted: its file may change or be cut at any time.
  absl::StatusOr<Compiled> ReadCompiled(const ModelId& id);
  // As Store; `produce` writes the form, of about so many bytes. Its error is
  // the error.
  absl::Status StoreCompiled(const ModelId& id, const std::string& options,
                             const std::string& name,
                             absl::FunctionRef<absl::Status(Write)> produce,
                             uint64_t about = 0);
  // From now on; the longest unused files go where there are too many bytes.
  void SetLimit(uint64_t bytes);

  // A form that was not good after all.
  void RemoveCompiled(const ModelId& id);

 private:
  ModelCache(std::string folder, uint64_t limit, std::string compiler,
             CacheDisk* disk);
  [[nodiscard]] std::string PathOf(const ModelId& id) const;
  [[nodiscard]] std::string CompiledPathOf(const ModelId& id) const;
  // A new file at `path`, in place of what is there.
  absl::Status WriteFile(const std::string& path,
                         absl::FunctionRef<absl::Status(Write)> produce);
  // For a file of so many bytes, at most the limit, that takes the place of
  // `replaced`; how large it may be.
  uint64_t MakeRoom(uint64_t bytes, const std::string& replaced);
  [[nodiscard]] absl::Status TooLarge() const;
  [[nodiscard]] absl::Status Full() const;

  const std::string folder_;
  std::atomic<uint64_t> limit_;
  const std::string compiler_;
  CacheDisk real_disk_;
  CacheDisk* const disk_;
  absl::Status writable_;
};

}  // namespace rknnd::core

#endif  // DAEMON_CORE_MODELS_MODEL_CACHE_H_
