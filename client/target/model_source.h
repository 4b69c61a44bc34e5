// The bytes of a model and where they can be had again: a file, which is read
// and hashed anew when a daemon asks for it, or bytes the program gave, which
// may be gone when rknn_init returns. The daemon is told the hash first and
// gets the bytes only when it lacks them, in a sealed memfd, never a path.

#ifndef CLIENT_TARGET_MODEL_SOURCE_H_
#define CLIENT_TARGET_MODEL_SOURCE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/posix/unique_fd.h"
#include "base/values/expected.h"
#include "base/values/model_options.h"
#include "base/values/sha256.h"

namespace rknnd::client {

// SHA-256 of the model's bytes and, where it has any, of its options after
// them.
using ModelId = base::Sha256Digest;

// A part of a file or of a program's bytes.
struct ModelSlice {
  uint64_t offset = 0;
  uint64_t size = 0;
};

// Thread: any, one at a time.
class ModelSource {
 public:
  // Reads the file once, for its hash. Options are the text of the file of the
  // same name that ends in .yml, if there is one. A slice that does not lie
  // inside the file is ignored.
  static base::Expected<std::shared_ptr<ModelSource>> OfFile(
      const std::string& path, std::optional<ModelSlice> slice);
  // `bytes` must stay until ForgetBytes().
  static base::Expected<std::shared_ptr<ModelSource>> OfBytes(
      std::span<const std::byte> bytes, std::optional<ModelSlice> slice);

  // A model of which nothing but the hash is known here: the daemon has it, or
  // it cannot be had.
  static std::shared_ptr<ModelSource> OfId(const ModelId& id);

  [[nodiscard]] const ModelId& id() const { return id_; }
  // The file's name without its folder; "" for bytes.
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const std::string& options() const { return options_; }

  // A part of `of`, or the whole with such operators: a model with the same
  // bytes and options of its own (base/values/model_options.h). `of` may be one
  // of these. kFailedPrecondition when the bytes are gone.
  static base::Expected<std::shared_ptr<ModelSource>> ForCustomOperators(
      const std::shared_ptr<ModelSource>& of,
      const base::CustomOperatorsOption& custom);

  // It takes what its file lacks from `owner`, which is part of its identity
  // from now on. Once, and first of all.
  void ShareWeightsOf(std::shared_ptr<ModelSource> owner);
  // Null: it shares nobody's.
  [[nodiscard]] const std::shared_ptr<ModelSource>& owner() const {
    return owner_;
  }

  // A memfd with the model's bytes, sealed against shrink, grow and write.
  // kFailedPrecondition when the file has changed or the bytes are gone.
  base::Expected<base::UniqueFd> ToMemfd();
  // From now on bytes that a program gave are held in memory of our own.
  base::Expected<void> KeepBytes();
  [[nodiscard]] bool keeps_bytes() const { return kept_.valid(); }
  // False: whoever lacks the model has to get it from somebody else.
  [[nodiscard]] bool has_bytes() const {
    return kept_.valid() || !path_.empty() || !bytes_.empty();
  }
  // The program's bytes are no longer there.
  void ForgetBytes() { bytes_ = {}; }

 private:
  ModelSource() = default;

  base::Expected<base::UniqueFd> CopyFile() const;

  std::string path_;  // absolute; "" for bytes
  std::string name_;
  std::optional<ModelSlice> slice_;  // of the file
  std::span<const std::byte> bytes_;
  std::string options_;
  base::Sha256 hash_;  // of bytes and options so far
  ModelId id_{};
  std::shared_ptr<ModelSource> owner_;
  std::shared_ptr<ModelSource> plain_;  // without custom operators; null: this
  base::UniqueFd kept_;                 // sealed copy of bytes_
  bool id_only_ = false;
};

}  // namespace rknnd::client

#endif  // CLIENT_TARGET_MODEL_SOURCE_H_
