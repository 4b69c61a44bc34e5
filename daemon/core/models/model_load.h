// One attempt to load a model: where its bytes come from, and what became of
// it. Made by the registry on the loop, run on the loader thread, handed back.

#ifndef DAEMON_CORE_MODELS_MODEL_LOAD_H_
#define DAEMON_CORE_MODELS_MODEL_LOAD_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "base/posix/mapping.h"
#include "base/posix/unique_fd.h"
#include "daemon/core/accounts/ledger.h"
#include "daemon/core/models/load_turns.h"
#include "daemon/core/models/model_cache.h"
#include "daemon/core/terms/types.h"
#include "driver/device.h"

namespace rknnd::core {

// `name`, or of a model that a program had in memory, which has no file's name,
// "bytes-1f8b03c4": the beginning of its hash, which `rknnctl models` lists.
std::string NameForMessages(const std::string& name, const ModelId& id);

// Thread: one at a time; the loop until Restore or Run, a loader during it, the
// loop from its result on. Only KeepInCache comes after that, on the loader,
// and touches what the loop does not.
//
// A model comes from an upload, now or before the daemon's restart, from the
// cache folder, or, in a preload, from a file. Where the cache folder has what
// this device compiled it to, the bytes are not even read.
struct ModelLoad {
  enum class Result {
    kLoaded,
    kWrongBytes,  // not the model they were said to be
    kRefused,     // the device cannot load this model
  };

  // What to load. Without `bytes`: from the cache folder.
  ModelId id{};
  std::string name;
  [[nodiscard]] std::string title() const { return NameForMessages(name, id); }
  std::string options;
  base::UniqueFd bytes;
  uint64_t size = 0;
  // They were kept over the daemon's restart: of use where the cache folder has
  // no compiled form.
  bool kept = false;
  // The model whose weights it shares, where its options name one and an upload
  // brought it too. Otherwise that one is read from the cache folder.
  base::UniqueFd weights_of;
  std::string weights_of_options;
  // Only what its options name is shared: all else is a copy of its own.
  bool copies_weights = false;
  LoadPayer payer;
  Charge charge;
  std::function<void(const std::string&)> warn;
  std::function<void(absl::Status)> done;

  // What became of it.
  Result result = Result::kRefused;
  absl::Status status;
  std::unique_ptr<driver::Model> model;

  // What a preload's file holds, with the text of the .yml beside it as
  // options. Thread: loader.
  static absl::StatusOr<std::shared_ptr<ModelLoad>> OfFile(
      const std::string& path, uint64_t largest);

  [[nodiscard]] bool from_cache() const {
    return !bytes.valid() && !file_.valid();
  }
  // From its compiled form.
  [[nodiscard]] bool restored() const { return restored_; }
  // Why there was one that was of no use; OK: there was none, or it was.
  [[nodiscard]] const absl::Status& unusable() const { return unusable_; }
  // Whether `other` would end alike: the same bytes and the same options. (The
  // id is the hash of both, one after the other.)
  [[nodiscard]] bool SameAs(const ModelLoad& other) const;

  // Whether the cache folder may have what takes little to load: Restore then,
  // and Run where that has not ended it. Thread: loop.
  [[nodiscard]] bool MayRestore(const ModelCache* cache) const;
  // Whether it has ended, one way or the other. Thread: the quick loader.
  bool Restore(driver::Device& device, ModelCache& cache);
  // Compiles it. Thread: loader.
  void Run(driver::Device& device, ModelCache* cache);
  // After a successful Run that gave this model: what the folder lacks of it.
  // Thread: loader.
  absl::Status KeepInCache(ModelCache& cache, driver::Model& loaded);
  // Frees all bytes. Thread: loader, last.
  void LetGo();

 private:
  // False: there is no compiled form, or none that is good.
  bool RunCompiled(driver::Device& device, ModelCache& cache);
  absl::Status LoadWith(driver::Device& device,
                        const driver::LoadRequest& request);
  absl::Status ReadUpload();
  absl::Status ReadCache(ModelCache* cache);
  // The model whose weights it shares, if there is one.
  absl::Status ReadOwner(ModelCache* cache);
  absl::Status ReadUploadedOwner();

  bool restored_ = false;
  absl::Status unusable_;
  base::Mapping file_;  // of a preload
  base::Mapping mapping_;
  ModelCache::Entry cached_;
  std::span<const std::byte> contents_;
  // Likewise of the model whose weights it shares.
  std::optional<ModelId> owner_;
  base::Mapping owner_mapping_;
  ModelCache::Entry owner_cached_;
  std::span<const std::byte> owner_contents_;
};

}  // namespace rknnd::core

#endif  // DAEMON_CORE_MODELS_MODEL_LOAD_H_
