// Models by hash: loaded once for the whole board, kept while any context uses
// them and for a grace period after. Sessions ask; the loader thread reads,
// hashes and compiles, in the order of LoadTurns; what the cache folder has
// compiled is loaded by a thread of its own and waits for no compilation.

#ifndef DAEMON_CORE_MODELS_MODEL_REGISTRY_H_
#define DAEMON_CORE_MODELS_MODEL_REGISTRY_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/posix/clock.h"
#include "base/posix/event_loop.h"
#include "daemon/core/accounts/ledger.h"
#include "daemon/core/memory/spare_memory.h"
#include "daemon/core/models/load_turns.h"
#include "daemon/core/models/loaded_model.h"
#include "daemon/core/models/model_cache.h"
#include "daemon/core/models/model_keeper.h"
#include "daemon/core/models/model_load.h"
#include "daemon/core/models/weight_charges.h"
#include "daemon/core/terms/options.h"
#include "daemon/core/terms/types.h"
#include "driver/device.h"

namespace rknnd::core {

class ModelRegistry;
class PreloadedModels;

// What a model is on its way through:
//
//            Upload, or Use of a model in the cache folder
//                          |
//                      kLoading --all attempts failed--> kGone
//                       |     |
//            waited for |     | nobody waits
//                       v     v    Use
//               kResident <--------- kGrace --timer--> kGone
//                       |             ^
//                       +--last use---+
//
// kGone: out of the registry; its memory goes with its last job.
enum class ModelState { kLoading, kResident, kGrace, kGone };

struct ModelEntry;

// Keeps a model resident; or none, as a context has it that never runs.
// Thread: loop.
class ModelUse {
 public:
  ModelUse() = default;
  ModelUse(ModelUse&& other) noexcept;
  ModelUse& operator=(ModelUse&& other) noexcept;
  ModelUse(const ModelUse&) = delete;
  ModelUse& operator=(const ModelUse&) = delete;
  ~ModelUse();

  // Another use of the same model. This and model() need one.
  [[nodiscard]] ModelUse Duplicate() const;
  [[nodiscard]] const std::shared_ptr<const LoadedModel>& model() const;
  // Some context of this model may run on these cores too (bits): their arenas
  // must fit it. Forgotten only with the model.
  void Reach(uint32_t cores);
  // For `loads` in reports: one more rknn_init got this model.
  void CountLoad();

 private:
  friend class ModelRegistry;
  ModelUse(std::shared_ptr<ModelRegistry> registry,
           std::shared_ptr<ModelEntry> entry);

  std::shared_ptr<ModelRegistry> registry_;
  std::shared_ptr<ModelEntry> entry_;
};

// Thread: loop. Callbacks are called on the loop, at once or later.
class ModelRegistry : public std::enable_shared_from_this<ModelRegistry> {
 public:
  using UseCallback = std::function<void(absl::StatusOr<ModelUse>)>;
  using DoneCallback = std::function<void(absl::Status)>;

  struct Parts {
    driver::Device* device = nullptr;
    base::Executor* loop = nullptr;
    base::Executor* loader = nullptr;
    base::Executor* quick_loader = nullptr;  // of compiled forms
    const base::Clock* clock = nullptr;
    base::Executor* pager = nullptr;  // frees large weights
    TimerQueue* timers = nullptr;
    base::Nanoseconds grace = 0;
    std::shared_ptr<Ledger> ledger;
    std::shared_ptr<ModelCache> cache;   // null: none
    ModelKeeper* keeper = nullptr;       // null: none
    LogSink* log = nullptr;              // the daemon's own; null: none
    std::shared_ptr<SpareMemory> spare;  // of what was freed; null: is kept
    // Every Use that no upload was made for yet gets a copy of its own.
    bool vendor_sharing = false;
  };
  static std::shared_ptr<ModelRegistry> Create(Parts parts);
  ~ModelRegistry();

  // Lets go of what was preloaded, cancels timers; nothing is called back from
  // now on.
  void Stop();
  // Called when a model has gone.
  void set_gone(std::function<void()> gone) { gone_ = std::move(gone); }

  // NOT_FOUND when the model is neither resident, loading, cached nor kept.
  // `payer`: whose turn it is loaded in.
  void Use(const ModelId& id, const LoadPayer& payer, UseCallback done);
  // `bytes` were checked to be immutable; their hash is checked here. `warn`
  // hears, in words, of what went wrong without being a failure.
  void Upload(ModelUpload upload, uint64_t size, Charge charge,
              const LoadPayer& payer,
              std::function<void(const std::string&)> warn, DoneCallback done);

  // What the configuration names.
  [[nodiscard]] PreloadedModels& preloaded() { return *preloaded_; }
  // Loads what was read from a file, unless it is there or being loaded.
  void Load(std::shared_ptr<ModelLoad> load);
  // Of models whose last context goes from now on.
  void set_grace(base::Nanoseconds grace) { parts_.grace = grace; }
  // Of the cache folder; what is too much goes soon.
  void SetCacheLimit(uint64_t bytes);

  // Null when it is not loaded; a copy of it, with vendor sharing.
  [[nodiscard]] std::shared_ptr<const LoadedModel> Resident(
      const ModelId& id) const;

  // Somebody has gone who may have asked for models: those that nobody else has
  // asked for need not wait for their first context.
  void NoteAskerGone();
  // Lets go of the model that no context has had for the longest time, though
  // its grace period is not over. False when there is none.
  bool DropLongestUnused();

  // Internal memory that each core's arena must have room for.
  [[nodiscard]] std::vector<uint64_t> ArenaNeeds(uint32_t cores) const;
  // One a loaded model; without contexts' numbers where `uses` is 0.
  [[nodiscard]] std::vector<ModelReport> Reports() const;
  // So many there are that were loaded in this payer's turn.
  [[nodiscard]] uint64_t LoadedBy(const std::string& payer) const;
  // Of each loaded model with layers that a reference loop computes: which.
  [[nodiscard]] std::vector<std::string> SlowModels() const;
  [[nodiscard]] uint32_t count() const;

 private:
  friend class ModelUse;
  // The second is 0 but with vendor sharing, where each copy has its own.
  using Key = std::pair<ModelId, uint64_t>;

  explicit ModelRegistry(Parts parts);
  // The copy that a further use, or upload, of `id` joins.
  std::shared_ptr<ModelEntry> FindJoinable(const ModelId& id) const;
  std::shared_ptr<ModelEntry> MakeEntry(const ModelId& id);
  void StartNextLoad(ModelEntry& entry);
  // On the loader's thread, from its bytes.
  void Compile(ModelEntry& entry, const std::shared_ptr<ModelLoad>& load);
  // `payer` waits for the attempt under way, too, or has asked for a model that
  // nobody has used yet.
  void Join(ModelEntry& entry, const LoadPayer& payer);
  // Whether models that were loaded in `payer`'s turn leave others room when
  // this is one more of them.
  [[nodiscard]] absl::Status CheckRoom(const std::string& payer,
                                       const driver::Model& model) const;
  void OnLoaded(const Key& key, const std::shared_ptr<ModelLoad>& load);
  // All who had asked for it had gone before it began.
  void OnUnwanted(const Key& key, const std::shared_ptr<ModelLoad>& load);
  // What need not be done before the model was answered for.
  void FinishLater(const ModelEntry& entry,
                   const std::shared_ptr<ModelLoad>& load);
  // Tells of layers that no kernel is made for.
  void TellSlowLayers(const LoadedModel& model, const ModelLoad& load);
  void OnFinished(const Key& key, const LoadedModel& model,
                  const absl::Status& finished);
  // What a load of so many bytes had needed beside the model is gone.
  void NoteFreed(uint64_t bytes);
  // Tells of the cache folder when it fails first, and when it works again.
  void NoteCache(const absl::Status& kept);
  void OnLoadFailed(const std::shared_ptr<ModelEntry>& entry,
                    const ModelLoad& load);
  // An attempt to load it from what is kept or cached; null: it is neither.
  [[nodiscard]] std::shared_ptr<ModelLoad> FindBytes(const ModelId& id);
  // It is not loaded any more.
  void LetGoOf(const ModelId& id);
  void Release(const std::shared_ptr<ModelEntry>& entry);
  void StartGrace(ModelEntry& entry, base::Nanoseconds period);
  void EndGrace(const Key& key);

  Parts parts_;
  const std::shared_ptr<WeightCharges> charges_;
  const std::shared_ptr<LoadTurns> turns_, quick_turns_;
  const std::unique_ptr<PreloadedModels> preloaded_;
  std::function<void()> gone_;
  bool cache_fails_ = false;
  uint64_t next_salt_ = 1;
  uint64_t next_grace_ = 1;
  std::map<Key, std::shared_ptr<ModelEntry>> entries_;
  // Out of entries_, as they are of no use, and not let go of yet: their jobs
  // go on to fail with the device's own reason.
  std::vector<std::shared_ptr<ModelEntry>> failed_;
};

}  // namespace rknnd::core

#endif  // DAEMON_CORE_MODELS_MODEL_REGISTRY_H_
