// Who uses which model, and when it goes. All on the loop; only ModelLoad runs
// elsewhere. An upload's bytes are wrong until their hash says otherwise, and
// wrong bytes are the uploader's failure alone: whoever waits for the same id
// is served by the next upload.

#include "daemon/core/models/model_registry.h"

#include <algorithm>
#include <exception>
#include <limits>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status/status.h"
#include "base/values/sha256.h"
#include "daemon/core/models/model_entry.h"
#include "daemon/core/models/slow_layers.h"
#include "daemon/core/terms/events.h"

namespace rknnd::core {
namespace {

// An uploaded model waits at least so long for its first context, which its
// client is about to ask for, however short the grace period is.
constexpr base::Nanoseconds kFirstUsePeriod = 10 * base::kSecond;

// After so long the client of a model that was in the cache folder has its
// answer. Its kernels are then made, as nobody has to wait for them.
constexpr base::Nanoseconds kFirstAnswer = 100 * base::kMillisecond;

// What the configuration preloads.
const LoadPayer kOwnLoads{"the configuration"};

absl::Status NotLoaded(const ModelId& id) {
  return absl::NotFoundError(
      absl::StrCat("model ", base::ToHex(id), " is not loaded: upload it"));
}

EventFields FieldsOf(const ModelId& id) {
  EventFields fields;
  fields.model = base::ToHex(id);
  return fields;
}

}  // namespace

ModelUse::ModelUse(std::shared_ptr<ModelRegistry> registry,
                   std::shared_ptr<ModelEntry> entry)
    : registry_(std::move(registry)), entry_(std::move(entry)) {
  ++entry_->uses;
}

ModelUse::ModelUse(ModelUse&& other) noexcept = default;

ModelUse& ModelUse::operator=(ModelUse&& other) noexcept {
  std::swap(registry_, other.registry_);
  std::swap(entry_, other.entry_);
  return *this;
}

ModelUse::~ModelUse() {
  if (entry_ != nullptr) registry_->Release(entry_);
}

ModelUse ModelUse::Duplicate() const { return {registry_, entry_}; }

const std::shared_ptr<const LoadedModel>& ModelUse::model() const {
  return entry_->model;
}

void ModelUse::Reach(uint32_t cores) {
  if (entry_ != nullptr) entry_->reach |= cores;
}

void ModelUse::CountLoad() { ++entry_->loads; }

ModelRegistry::ModelRegistry(Parts parts)
    : parts_(std::move(parts)),
      charges_(std::make_shared<WeightCharges>(parts_.ledger, parts_.pager,
                                               parts_.spare)),
      turns_(LoadTurns::Create(parts_.loop, parts_.loader, parts_.clock)),
      quick_turns_(
          LoadTurns::Create(parts_.loop, parts_.quick_loader, parts_.clock)) {}

std::shared_ptr<ModelRegistry> ModelRegistry::Create(Parts parts) {
  return std::shared_ptr<ModelRegistry>(new ModelRegistry(std::move(parts)));
}

ModelRegistry::~ModelRegistry() = default;

void ModelRegistry::Stop() {
  gone_ = nullptr;
  turns_->Stop();
  quick_turns_->Stop();
  preloaded_.clear();
  auto entries = std::exchange(entries_, {});
  failed_.clear();
  for (auto& [key, entry] : entries) {
    if (entry->state == ModelState::kGrace) parts_.timers->Cancel(entry->timer);
    entry->state = ModelState::kGone;
    entry->waiters.clear();
    entry->attempts.clear();
  }
}

void ModelRegistry::Use(const ModelId& id, const LoadPayer& payer,
                        UseCallback done) {
  std::shared_ptr<ModelEntry> entry = FindJoinable(id);
  if (entry == nullptr) {
    std::shared_ptr<ModelLoad> load = FindBytes(id);
    if (load == nullptr) {
      done(NotLoaded(id));
      return;
    }
    load->payer = payer;
    entry = MakeEntry(id);
    entry->attempts.push_back(std::move(load));
    StartNextLoad(*entry);
  } else {
    Join(*entry, payer);
  }
  entry->used = true;
  if (entry->state == ModelState::kLoading) {
    entry->waiters.push_back(std::move(done));
    return;
  }
  if (entry->state == ModelState::kGrace) {
    parts_.timers->Cancel(entry->timer);
    entry->state = ModelState::kResident;
  }
  done(ModelUse(shared_from_this(), entry));
}

std::shared_ptr<ModelLoad> ModelRegistry::FindBytes(const ModelId& id) {
  auto load = std::make_shared<ModelLoad>();
  load->id = id;
  if (parts_.keeper != nullptr) {
    if (std::optional<KeptModel> kept = parts_.keeper->Take(id)) {
      load->bytes = std::move(kept->bytes);
      load->size = kept->size;
      load->name = std::move(kept->name);
      load->options = std::move(kept->options);
      load->kept = true;
      return load;
    }
  }
  if (parts_.cache == nullptr ||
      (!parts_.cache->Contains(id) && !parts_.cache->ContainsCompiled(id))) {
    return nullptr;
  }
  return load;
}

void ModelRegistry::LetGoOf(const ModelId& id) {
  if (parts_.keeper != nullptr) parts_.keeper->LetGo(id);
}

void ModelRegistry::Upload(ModelUpload upload, uint64_t size, Charge charge,
                           const LoadPayer& payer,
                           std::function<void(const std::string&)> warn,
                           DoneCallback done) {
  std::shared_ptr<ModelEntry> entry;
  if (!parts_.vendor_sharing) entry = FindJoinable(upload.id);
  if (entry != nullptr && entry->state != ModelState::kLoading) {
    if (entry->state == ModelState::kGrace) {
      // The context it is meant for comes next.
      parts_.timers->Cancel(entry->timer);
      StartGrace(*entry, std::max(parts_.grace, kFirstUsePeriod));
    }
    done(absl::OkStatus());
    return;
  }

  auto load = std::make_shared<ModelLoad>();
  load->id = upload.id;
  load->name = std::move(upload.name);
  load->options = std::move(upload.options);
  load->bytes = std::move(upload.bytes);
  load->size = size;
  load->weights_of = std::move(upload.weights_of);
  load->weights_of_options = std::move(upload.weights_of_options);
  load->charge = std::move(charge);
  load->payer = payer;
  load->warn = std::move(warn);
  load->done = std::move(done);
  const bool starts = entry == nullptr;
  if (starts) entry = MakeEntry(load->id);
  entry->attempts.push_back(std::move(load));
  if (starts) {
    StartNextLoad(*entry);
  } else {
    Join(*entry, payer);
  }
}

std::shared_ptr<ModelEntry> ModelRegistry::FindJoinable(
    const ModelId& id) const {
  auto at = entries_.lower_bound({id, 0});
  for (; at != entries_.end() && at->first.first == id; ++at) {
    // With vendor sharing a copy belongs to whoever asked first.
    if (!parts_.vendor_sharing || !at->second->used) return at->second;
  }
  return nullptr;
}

std::shared_ptr<ModelEntry> ModelRegistry::MakeEntry(const ModelId& id) {
  auto entry = std::make_shared<ModelEntry>();
  entry->key = {id, parts_.vendor_sharing ? next_salt_++ : 0};
  entries_[entry->key] = entry;
  return entry;
}

void ModelRegistry::StartNextLoad(ModelEntry& entry) {
  std::shared_ptr<ModelLoad> load = std::move(entry.attempts.front());
  entry.attempts.pop_front();
  load->copies_weights = parts_.vendor_sharing;
  entry.restores = load->MayRestore(parts_.cache.get());
  if (!entry.restores) return Compile(entry, load);
  const auto ended = std::make_shared<bool>(false);
  entry.turn = quick_turns_->Add(
      load->payer, ExpectedLoad(0),
      [load, ended, device = parts_.device, cache = parts_.cache] {
        *ended = load->Restore(*device, *cache);
      },
      [load, ended, key = entry.key,
       weak = weak_from_this()](LoadTurns::End end) {
        const auto registry = weak.lock();
        if (registry == nullptr) return;
        if (end == LoadTurns::End::kUnwanted) {
          return registry->OnUnwanted(key, load);
        }
        if (*ended) return registry->OnLoaded(key, load);
        // That was of no use: it is compiled, in its payer's turn.
        const auto found = registry->entries_.find(key);
        if (found != registry->entries_.end()) {
          registry->Compile(*found->second, load);
        }
      });
}

void ModelRegistry::Compile(ModelEntry& entry,
                            const std::shared_ptr<ModelLoad>& load) {
  entry.restores = false;
  entry.turn = turns_->Add(
      load->payer, ExpectedLoad(load->size),
      [load, device = parts_.device, cache = parts_.cache] {
        load->Run(*device, cache.get());
      },
      [load, key = entry.key, weak = weak_from_this()](LoadTurns::End end) {
        const auto registry = weak.lock();
        if (registry == nullptr) return;
        if (end == LoadTurns::End::kUnwanted) {
          return registry->OnUnwanted(key, load);
        }
        registry->OnLoaded(key, load);
      });
  // The others that wait for it already.
  for (const LoadPayer& payer : entry.joined) {
    turns_->Join(entry.turn, payer);
  }
}

void ModelRegistry::OnUnwanted(const Key& key,
                               const std::shared_ptr<ModelLoad>& load) {
  const auto found = entries_.find(key);
  if (found == entries_.end()) return;  // stopped
  ModelEntry& entry = *found->second;
  entry.attempts.push_front(load);
  // Somebody may have come since: then it has the next turn of that one.
  for (const LoadPayer& payer : entry.joined) {
    if (payer.asker.has_value() && payer.asker->expired()) continue;
    load->payer = payer;
    return StartNextLoad(entry);
  }
  entry.state = ModelState::kGone;
  entries_.erase(found);
  if (load->kept) LetGoOf(key.first);
}

void ModelRegistry::Join(ModelEntry& entry, const LoadPayer& payer) {
  if (entry.state != ModelState::kLoading) return;
  std::erase_if(entry.joined, [](const LoadPayer& one) {
    return one.asker.has_value() && one.asker->expired();
  });
  entry.joined.push_back(payer);
  (entry.restores ? quick_turns_ : turns_)->Join(entry.turn, payer);
}

void ModelRegistry::FinishLater(const ModelEntry& entry,
                                const std::shared_ptr<ModelLoad>& load) {
  struct Finished {
    std::shared_ptr<const LoadedModel> model;
    absl::Status kept, finished;
  };
  // Goes on the loop, where its model came from.
  const auto all = std::make_shared<Finished>();
  all->model = entry.model;
  const auto run = [load, all, cache = parts_.cache] {
    // Devices are other people's code.
    const auto caught = [](auto step) -> absl::Status {
      try {
        return step();
      } catch (const std::exception& error) {
        return absl::InternalError(error.what());
      }
    };
    driver::Model& model = *all->model->model;
    if (cache != nullptr) {
      all->kept = caught([&] { return load->KeepInCache(*cache, model); });
    }
    all->finished = caught([&] { return model.Finish(); });
    if (!all->finished.ok() && !absl::IsResourceExhausted(all->finished) &&
        cache != nullptr && load->restored()) {
      cache->RemoveCompiled(load->id);
    }
    load->LetGo();
  };
  const auto ended = [load, all, key = entry.key,
                      weak = weak_from_this()](LoadTurns::End) {
    if (!all->kept.ok() && load->warn != nullptr) {
      load->warn(absl::StrCat("model '", load->title(),
                              "' is not kept for the daemon's restart: ",
                              std::string(all->kept.message())));
    }
    if (const auto registry = weak.lock()) {
      if (!load->restored()) registry->NoteCache(all->kept);
      registry->OnFinished(key, *all->model, all->finished);
    }
  };
  // It is there: whoever asked for it.
  LoadPayer payer = load->payer;
  payer.asker.reset();
  turns_->Add(payer, ExpectedLoad(load->size), run, ended);
}

void ModelRegistry::TellSlowLayers(const LoadedModel& model,
                                   const ModelLoad& load) {
  const std::string text = SlowLayersText(model.name, model.info());
  if (text.empty()) return;
  if (parts_.log != nullptr) parts_.log->LogEvent(1, text, FieldsOf(model.id));
  if (load.warn != nullptr) load.warn(text);
}

void ModelRegistry::OnFinished(const Key& key, const LoadedModel& model,
                               const absl::Status& finished) {
  if (model.charges != nullptr) model.charges->Update(*model.model);
  NoteFreed(model.info().weight_size);
  if (finished.ok()) return;
  // Jobs of those who have it fail and say why; whoever asks next gets a new
  // one.
  const auto found = entries_.find(key);
  if (found != entries_.end() && found->second->model.get() == &model) {
    if (found->second->state == ModelState::kGrace) {
      parts_.timers->Cancel(found->second->timer);
    }
    const std::shared_ptr<ModelEntry> entry = found->second;
    entry->state = ModelState::kGone;
    entries_.erase(found);
    if (entry->uses > 0) failed_.push_back(entry);
    LetGoOf(key.first);
    if (gone_ != nullptr) gone_();
  }
  if (parts_.log != nullptr) {
    parts_.log->LogEvent(
        1,
        absl::StrCat("model '", model.name, "' cannot be used, load it again: ",
                     std::string(finished.message())),
        FieldsOf(key.first));
  }
  for (auto& [path, use] : preloaded_) {
    if (!use.has_value() || use->model().get() != &model) continue;
    use.reset();
    KeepForGood(path, key.first);
  }
}

void ModelRegistry::NoteFreed(uint64_t bytes) {
  if (parts_.spare != nullptr) parts_.spare->NoteFreed(bytes);
}

void ModelRegistry::KeepForGood(const std::string& path, const ModelId& id) {
  // A failure has been told of by the attempt.
  Use(id, kOwnLoads, [this, path](absl::StatusOr<ModelUse> use) {
    const auto wanted = preloaded_.find(path);
    // Else it need not be kept any more.
    if (wanted != preloaded_.end() && use.ok()) {
      wanted->second.emplace(*std::move(use));
    }
  });
}

void ModelRegistry::NoteCache(const absl::Status& kept) {
  if (parts_.cache == nullptr || kept.ok() != cache_fails_) return;
  cache_fails_ = !kept.ok();
  if (parts_.log == nullptr) return;
  parts_.log->Log(
      1, cache_fails_
             ? absl::StrCat("models are not kept in the cache folder, and are "
                            "compiled again after a restart: ",
                            std::string(kept.message()))
             : std::string("models are kept in the cache folder again"));
}

void ModelRegistry::SetPreloaded(const std::vector<std::string>& paths,
                                 uint64_t largest) {
  std::map<std::string, std::optional<ModelUse>> before;
  std::swap(before, preloaded_);
  for (const std::string& path : paths) {
    const auto known = before.find(path);
    std::optional<ModelUse>& use = preloaded_[path];
    if (known != before.end()) use = std::move(known->second);
    if (!use.has_value()) Preload(path, largest);
  }
}

void ModelRegistry::SetCacheLimit(uint64_t bytes) {
  if (parts_.cache == nullptr) return;
  parts_.loader->Post(
      [cache = parts_.cache, bytes] { cache->SetLimit(bytes); });
}

void ModelRegistry::Preload(const std::string& path, uint64_t largest) {
  parts_.loader->Post(
      [path, largest, loop = parts_.loop, weak = weak_from_this()] {
        auto read = ModelLoad::OfFile(path, largest);
        loop->Post([path, weak, read = std::move(read)]() mutable {
          if (const auto registry = weak.lock()) {
            registry->OnFileRead(path, std::move(read));
          }
        });
      });
}

void ModelRegistry::OnFileRead(
    const std::string& path, absl::StatusOr<std::shared_ptr<ModelLoad>> read) {
  const auto tell = [this, path](const absl::Status& status) {
    if (status.ok() || parts_.log == nullptr) return;
    parts_.log->Log(1, absl::StrCat("model '", path, "' is not preloaded: ",
                                    std::string(status.message())));
  };
  if (!read.ok()) return tell(read.status());
  const ModelId id = (*read)->id;
  std::shared_ptr<ModelEntry> entry = FindJoinable(id);
  if (entry == nullptr) {
    entry = MakeEntry(id);
    (*read)->done = tell;
    (*read)->payer = kOwnLoads;
    entry->attempts.push_back(*std::move(read));
    StartNextLoad(*entry);
  }
  KeepForGood(path, id);
}

void ModelRegistry::OnLoaded(const Key& key,
                             const std::shared_ptr<ModelLoad>& load) {
  const auto found = entries_.find(key);
  if (found == entries_.end()) return;  // stopped
  const std::shared_ptr<ModelEntry> entry = found->second;
  if (!load->unusable().ok() && parts_.log != nullptr) {
    parts_.log->LogEvent(1,
                         absl::StrCat("model '", load->title(),
                                      "' is not taken from its compiled form: ",
                                      std::string(load->unusable().message())),
                         FieldsOf(load->id));
  }
  if (load->result != ModelLoad::Result::kLoaded) {
    OnLoadFailed(entry, *load);
    return;
  }

  auto model = std::make_shared<LoadedModel>();
  model->id = load->id;
  model->name = load->name.empty() ? load->model->info().name : load->name;
  model->model = std::move(load->model);
  model->run_times = std::vector<RunTimes>(model->info().programs.size());
  // One that is only described has no weights here.
  if (model->info().runnable.ok()) {
    absl::Status charged = CheckRoom(load->payer.name, *model->model);
    if (charged.ok()) {
      charged = charges_->Enter(*model->model,
                                absl::StrCat("model '", model->name, "'"));
    }
    if (!charged.ok()) {
      load->result = ModelLoad::Result::kRefused;
      load->status = std::move(charged);
      OnLoadFailed(entry, *load);
      return;
    }
    model->charges = charges_;
  }
  TellSlowLayers(*model, *load);
  entry->payer = load->payer.name;
  entry->model = std::move(model);
  entry->state = ModelState::kResident;
  // Before the loader has the bytes again.
  if (parts_.keeper != nullptr && load->bytes.valid() && !load->kept) {
    parts_.keeper->Keep(load->id, load->bytes.get(), load->size, load->name,
                        load->options);
  }
  if (load->restored()) {
    // Its client is answered first: the memory that needs is made meanwhile.
    // A job that comes earlier makes what it needs itself.
    parts_.timers->RunAfter(
        kFirstAnswer, [weak = weak_from_this(), key, load,
                       made = std::weak_ptr<const LoadedModel>(entry->model)] {
          const auto registry = weak.lock();
          if (registry == nullptr) return;
          const auto still = registry->entries_.find(key);
          // Gone, or loaded again since: that one has a turn of its own.
          if (still == registry->entries_.end() || made.expired() ||
              still->second->model != made.lock()) {
            return;
          }
          registry->FinishLater(*still->second, load);
        });
  } else {
    FinishLater(*entry, load);
  }

  // Callbacks may take uses and drop them; this one keeps the entry meanwhile.
  const ModelUse keep(shared_from_this(), entry);
  const auto attempts = std::exchange(entry->attempts, {});
  const auto waiters = std::exchange(entry->waiters, {});
  if (load->done != nullptr) load->done(absl::OkStatus());
  for (const auto& other : attempts) other->done(absl::OkStatus());
  for (const auto& waiter : waiters) {
    waiter(ModelUse(shared_from_this(), entry));
  }
}

absl::Status ModelRegistry::CheckRoom(const std::string& payer,
                                      const driver::Model& model) const {
  if (payer == kOwnLoads.name) return absl::OkStatus();
  uint64_t own = 0;
  for (const auto& [key, entry] : entries_) {
    if (entry->model == nullptr || entry->payer != payer) continue;
    own += entry->model->model->held_weights();
  }
  return base::Annotate(
      parts_.ledger->CheckKept(payer, own, model.held_weights()), "weights");
}

void ModelRegistry::OnLoadFailed(const std::shared_ptr<ModelEntry>& entry,
                                 const ModelLoad& load) {
  const bool refused = load.result == ModelLoad::Result::kRefused;
  NoteFreed(load.size);
  if (load.kept) LetGoOf(load.id);
  // Told below, when the registry is in order again: they may call it.
  std::vector<DoneCallback> failed;
  if (load.done != nullptr) failed.push_back(load.done);
  if (refused) {
    // The same bytes would be refused again.
    std::deque<std::shared_ptr<ModelLoad>> others;
    for (auto& attempt : entry->attempts) {
      if (attempt->SameAs(load)) {
        failed.push_back(std::move(attempt->done));
      } else {
        others.push_back(std::move(attempt));
      }
    }
    entry->attempts = std::move(others);
  }
  std::vector<UseCallback> waiters;
  if (!entry->attempts.empty()) {
    StartNextLoad(*entry);
  } else {
    entry->state = ModelState::kGone;
    waiters = std::move(entry->waiters);
    entries_.erase(entry->key);
  }
  for (const auto& done : failed) done(load.status);
  for (const auto& waiter : waiters) {
    waiter(refused ? load.status : NotLoaded(load.id));
  }
}

void ModelRegistry::Release(const std::shared_ptr<ModelEntry>& entry) {
  if (--entry->uses > 0) return;
  if (std::erase(failed_, entry) > 0 && gone_ != nullptr) gone_();
  if (entry->state != ModelState::kResident) return;
  if (!entry->used) {
    StartGrace(*entry, std::max(parts_.grace, kFirstUsePeriod));
  } else if (parts_.vendor_sharing) {
    StartGrace(*entry, 0);  // as rknn_destroy of the vendor's library
  } else if (!entry->model->info().runnable.ok()) {
    StartGrace(*entry, 0);  // described again in no time
  } else {
    StartGrace(*entry, parts_.grace);
  }
}

void ModelRegistry::StartGrace(ModelEntry& entry, base::Nanoseconds period) {
  entry.state = ModelState::kGrace;
  entry.grace = next_grace_++;
  if (period <= 0) {
    EndGrace(Key(entry.key));
    return;
  }
  entry.timer = parts_.timers->RunAfter(
      period, [weak = weak_from_this(), key = entry.key] {
        if (auto registry = weak.lock()) registry->EndGrace(key);
      });
}

void ModelRegistry::EndGrace(const Key& key) {
  const auto found = entries_.find(key);
  if (found == entries_.end() || found->second->state != ModelState::kGrace) {
    return;
  }
  const std::shared_ptr<ModelEntry> entry = found->second;
  entry->state = ModelState::kGone;
  entries_.erase(found);
  LetGoOf(entry->key.first);
  if (gone_ != nullptr) gone_();
}

bool ModelRegistry::DropLongestUnused() {
  // What has gone already, as far as its users know, goes first.
  if (charges_->FreeWaiting()) return true;
  const ModelEntry* oldest = nullptr;
  for (const auto& [key, entry] : entries_) {
    // One that was never used is about to be: its client has just sent it.
    if (entry->state != ModelState::kGrace || !entry->used) continue;
    if (oldest == nullptr || entry->grace < oldest->grace) oldest = entry.get();
  }
  if (oldest == nullptr) return false;
  parts_.timers->Cancel(oldest->timer);
  EndGrace(Key(oldest->key));
  // Not later: somebody cannot go on without.
  charges_->FreeWaiting();
  return true;
}

}  // namespace rknnd::core
