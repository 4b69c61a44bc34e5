// Who uses which model, and when it goes. All on the loop; only ModelLoad runs
// elsewhere. An upload's bytes are wrong until their hash says otherwise, and
// wrong bytes are the uploader's failure alone: whoever waits for the same id
// is served by the next upload.

#include "daemon/core/model_registry.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/posix/sha256.h"

namespace rknnd::core {
namespace {

// An uploaded model waits at least so long for its first context, which its
// client is about to ask for, however short the grace period is.
constexpr base::Nanoseconds kFirstUsePeriod = 10 * base::kSecond;

absl::Status NotLoaded(const ModelId& id) {
  return absl::NotFoundError(
      absl::StrCat("model ", base::ToHex(id), " is not loaded: upload it"));
}

}  // namespace

struct ModelEntry {
  std::pair<ModelId, uint64_t> key;
  ModelState state = ModelState::kLoading;
  std::shared_ptr<const LoadedModel> model;  // kResident, kGrace
  uint32_t uses = 0;
  bool used = false;  // some context had it
  uint64_t loads = 0;
  uint32_t reach = 0;
  uint64_t timer = 0;  // kGrace
  // kLoading: what is tried when the attempt under way fails, and who waits.
  std::deque<std::shared_ptr<ModelLoad>> attempts;
  std::vector<ModelRegistry::UseCallback> waiters;
};

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

uint32_t ModelUse::reach() const { return entry_->reach; }

void ModelUse::set_reach(uint32_t cores) { entry_->reach = cores; }

void ModelUse::CountLoad() { ++entry_->loads; }

ModelRegistry::ModelRegistry(Parts parts) : parts_(std::move(parts)) {}

std::shared_ptr<ModelRegistry> ModelRegistry::Create(Parts parts) {
  return std::shared_ptr<ModelRegistry>(new ModelRegistry(std::move(parts)));
}

ModelRegistry::~ModelRegistry() = default;

void ModelRegistry::Stop() {
  gone_ = nullptr;
  auto entries = std::exchange(entries_, {});
  for (auto& [key, entry] : entries) {
    if (entry->state == ModelState::kGrace) parts_.timers->Cancel(entry->timer);
    entry->state = ModelState::kGone;
    entry->waiters.clear();
    entry->attempts.clear();
  }
}

void ModelRegistry::Use(const ModelId& id, UseCallback done) {
  std::shared_ptr<ModelEntry> entry = FindJoinable(id);
  if (entry == nullptr) {
    if (parts_.cache == nullptr || !parts_.cache->Contains(id)) {
      done(NotLoaded(id));
      return;
    }
    entry = MakeEntry(id);
    auto load = std::make_shared<ModelLoad>();
    load->id = id;
    entry->attempts.push_back(std::move(load));
    StartNextLoad(*entry);
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

void ModelRegistry::Upload(ModelUpload upload, uint64_t size, Charge charge,
                           std::function<void(absl::Status)> warn,
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
  load->charge = std::move(charge);
  load->warn = std::move(warn);
  load->done = std::move(done);
  const bool starts = entry == nullptr;
  if (starts) entry = MakeEntry(load->id);
  entry->attempts.push_back(std::move(load));
  if (starts) StartNextLoad(*entry);
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
  parts_.loader->Post([load, key = entry.key, device = parts_.device,
                       cache = parts_.cache, loop = parts_.loop,
                       weak = weak_from_this()] {
    load->Run(*device, cache.get());
    const bool keep = load->result == ModelLoad::Result::kLoaded &&
                      cache != nullptr && !load->from_cache();
    loop->Post([weak, key, load] {
      if (auto registry = weak.lock()) registry->OnLoaded(key, load);
    });
    if (!keep) return;
    absl::Status kept = load->KeepInCache(*cache);
    if (kept.ok()) return;
    // Moved: no status is held by two threads at once.
    loop->Post([load, kept = std::move(kept)] {
      if (load->warn != nullptr) load->warn(kept);
    });
  });
}

void ModelRegistry::OnLoaded(const Key& key,
                             const std::shared_ptr<ModelLoad>& load) {
  const auto found = entries_.find(key);
  if (found == entries_.end()) return;  // stopped
  const std::shared_ptr<ModelEntry> entry = found->second;
  if (load->result != ModelLoad::Result::kLoaded) {
    OnLoadFailed(entry, *load);
    return;
  }

  auto model = std::make_shared<LoadedModel>();
  model->id = load->id;
  model->name = load->name.empty() ? load->model->info().name : load->name;
  model->model = std::move(load->model);
  // One that is only described has no weights here.
  const bool runnable = model->info().runnable.ok();
  auto weights = parts_.ledger->Open(absl::StrCat("model '", model->name, "'"))
                     ->TryCharge(MemoryKind::kWeight,
                                 runnable ? model->info().weight_size : 0);
  if (weights.ok()) model->weights = *std::move(weights);
  entry->model = std::move(model);
  entry->state = ModelState::kResident;

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

void ModelRegistry::OnLoadFailed(const std::shared_ptr<ModelEntry>& entry,
                                 const ModelLoad& load) {
  const bool refused = load.result == ModelLoad::Result::kRefused;
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
  if (--entry->uses > 0 || entry->state != ModelState::kResident) return;
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
  if (gone_ != nullptr) gone_();
}

std::vector<uint64_t> ModelRegistry::ArenaNeeds(uint32_t cores) const {
  std::vector<uint64_t> needs(cores, 0);
  for (const auto& [key, entry] : entries_) {
    if (entry->model == nullptr) continue;
    for (uint32_t core = 0; core < cores; ++core) {
      if ((entry->reach >> core & 1) == 0) continue;
      needs[core] = std::max(needs[core], entry->model->internal_size());
    }
  }
  return needs;
}

std::vector<ModelReport> ModelRegistry::Reports() const {
  std::vector<ModelReport> reports;
  for (const auto& [key, entry] : entries_) {
    if (entry->model == nullptr) continue;
    ModelReport report;
    report.id = key.first;
    report.name = entry->model->name;
    report.contexts = entry->uses;
    report.weight = entry->model->info().weight_size;
    report.internal = entry->model->internal_size();
    report.loads = entry->loads;
    reports.push_back(std::move(report));
  }
  return reports;
}

uint32_t ModelRegistry::count() const {
  uint32_t count = 0;
  for (const auto& [key, entry] : entries_) count += entry->model != nullptr;
  return count;
}

}  // namespace rknnd::core
