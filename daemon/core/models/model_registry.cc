// Who uses which model, and when it goes. All on the loop. How one is loaded is
// in model_registry_loads.cc, what is told of them in
// model_registry_reports.cc.

#include "daemon/core/models/model_registry.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/values/sha256.h"
#include "daemon/core/models/model_entry.h"
#include "daemon/core/models/preloaded_models.h"

namespace rknnd::core {
namespace {

// An uploaded model waits at least so long for its first context, which its
// client is about to ask for, however short the grace period is.
constexpr base::Nanoseconds kFirstUsePeriod = 10 * base::kSecond;

}  // namespace

absl::Status NotLoaded(const ModelId& id) {
  return absl::NotFoundError(
      absl::StrCat("model ", base::ToHex(id), " is not loaded: upload it"));
}

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
          LoadTurns::Create(parts_.loop, parts_.quick_loader, parts_.clock)),
      preloaded_(std::make_unique<PreloadedModels>(
          this, parts_.loop, parts_.loader, parts_.log)) {}

std::shared_ptr<ModelRegistry> ModelRegistry::Create(Parts parts) {
  return std::shared_ptr<ModelRegistry>(new ModelRegistry(std::move(parts)));
}

ModelRegistry::~ModelRegistry() = default;

void ModelRegistry::Stop() {
  gone_ = nullptr;
  turns_->Stop();
  quick_turns_->Stop();
  preloaded_->Stop();
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
    Join(*entry, payer);
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

void ModelRegistry::Load(std::shared_ptr<ModelLoad> load) {
  if (FindJoinable(load->id) != nullptr) return;
  const std::shared_ptr<ModelEntry> entry = MakeEntry(load->id);
  entry->attempts.push_back(std::move(load));
  StartNextLoad(*entry);
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

void ModelRegistry::SetCacheLimit(uint64_t bytes) {
  if (parts_.cache == nullptr) return;
  parts_.loader->Post(
      [cache = parts_.cache, bytes] { cache->SetLimit(bytes); });
}

void ModelRegistry::Release(const std::shared_ptr<ModelEntry>& entry) {
  if (--entry->uses > 0) return;
  if (std::erase(failed_, entry) > 0 && gone_ != nullptr) gone_();
  if (entry->state != ModelState::kResident) return;
  if (!entry->used && !entry->HasLostAskers()) {
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

void ModelRegistry::NoteAskerGone() {
  std::vector<std::shared_ptr<ModelEntry>> lost;
  for (const auto& [key, entry] : entries_) {
    if (entry->state == ModelState::kGrace && !entry->used &&
        entry->HasLostAskers()) {
      lost.push_back(entry);
    }
  }
  for (const auto& entry : lost) {
    parts_.timers->Cancel(entry->timer);
    entry->askers.clear();
    StartGrace(*entry, parts_.grace);
  }
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
