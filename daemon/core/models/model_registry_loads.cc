// How the registry has a model loaded: whose turn it is, by which loader, and
// what becomes of the attempt. All on the loop; only ModelLoad runs elsewhere.
// An upload's bytes are wrong until their hash says otherwise, and wrong bytes
// are the uploader's failure alone: whoever waits for the same id is served by
// the next upload.

#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status/status.h"
#include "base/values/sha256.h"
#include "daemon/core/models/model_entry.h"
#include "daemon/core/models/model_registry.h"
#include "daemon/core/models/preloaded_models.h"
#include "daemon/core/models/slow_layers.h"
#include "daemon/core/terms/events.h"

namespace rknnd::core {
namespace {

// After so long the client of a model that was in the cache folder has its
// answer. Its kernels are then made, as nobody has to wait for them.
constexpr base::Nanoseconds kFirstAnswer = 100 * base::kMillisecond;

EventFields FieldsOf(const ModelId& id) {
  EventFields fields;
  fields.model = base::ToHex(id);
  return fields;
}

}  // namespace

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
  for (const LoadPayer& payer : entry.askers) {
    turns_->Join(entry.turn, payer);
  }
}

void ModelRegistry::Join(ModelEntry& entry, const LoadPayer& payer) {
  if (entry.used && entry.state != ModelState::kLoading) return;
  std::erase_if(entry.askers, [&payer](const LoadPayer& asker) {
    return asker.gone() || asker.IsSameAs(payer);
  });
  entry.askers.push_back(payer);
  if (entry.state == ModelState::kLoading) {
    (entry.restores ? quick_turns_ : turns_)->Join(entry.turn, payer);
  }
}

void ModelRegistry::OnUnwanted(const Key& key,
                               const std::shared_ptr<ModelLoad>& load) {
  const auto found = entries_.find(key);
  if (found == entries_.end()) return;  // stopped
  ModelEntry& entry = *found->second;
  entry.attempts.push_front(load);
  // Somebody may have come since: then it has the next turn of that one.
  for (const LoadPayer& payer : entry.askers) {
    if (payer.gone()) continue;
    load->payer = payer;
    return StartNextLoad(entry);
  }
  entry.state = ModelState::kGone;
  entries_.erase(found);
  if (load->kept) LetGoOf(key.first);
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
  entry->askers.push_back(load->payer);
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
  if (payer == PreloadedModels::Payer().name) return absl::OkStatus();
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

void ModelRegistry::TellSlowLayers(const LoadedModel& model,
                                   const ModelLoad& load) {
  const std::string text = SlowLayersText(model.name, model.info());
  if (text.empty()) return;
  if (parts_.log != nullptr) parts_.log->LogEvent(1, text, FieldsOf(model.id));
  if (load.warn != nullptr) load.warn(text);
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
  preloaded_->Renew(model);
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

void ModelRegistry::NoteFreed(uint64_t bytes) {
  if (parts_.spare != nullptr) parts_.spare->NoteFreed(bytes);
}

}  // namespace rknnd::core
