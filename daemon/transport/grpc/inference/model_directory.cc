#include "daemon/transport/grpc/inference/model_directory.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/values/sha256.h"
#include "daemon/core/terms/utf8.h"

namespace rknnd::transport {
namespace {

// A model that no repository has has one version.
constexpr char kOnlyVersion[] = "1";
// So long the names of sessions' models are taken as they were; a name that was
// not among them is asked for at once.
constexpr base::Nanoseconds kFresh = base::kSecond;

std::optional<core::ModelId> ParseHash(const std::string& text) {
  core::ModelId id{};
  if (text.size() != 2 * id.size()) return std::nullopt;
  for (const char c : text) {
    if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'))) {
      return std::nullopt;
    }
  }
  const std::string bytes = absl::HexStringToBytes(text);
  std::copy(bytes.begin(), bytes.end(), id.begin());
  return id;
}

// Those that some client has a context of. The daemon's own sessions do not
// count: what the repository has let go of, and what only runs for requests
// here, has no name.
std::set<core::ModelId> UsedByClients(const core::Service& service) {
  std::set<core::SessionId> own;
  for (const core::SessionReport& session : service.Sessions()) {
    if (session.peer.pid == getpid()) own.insert(session.id);
  }
  std::set<core::ModelId> used;
  for (const core::ContextReport& context : service.Contexts()) {
    if (!own.contains(context.session)) used.insert(context.model);
  }
  return used;
}

absl::Status Unknown(const std::string& name) {
  constexpr size_t kShown = 100;
  return absl::NotFoundError(absl::StrCat(
      "model '", name.substr(0, kShown),
      "' is unknown: neither the model repository has it nor has a session "
      "loaded one of that name or hash"));
}

}  // namespace

absl::StatusOr<ServedModel> ModelDirectory::Pick(const Names& names,
                                                 const std::string& name) {
  const auto [first, last] = names.equal_range(name);
  if (first == last) return Unknown(name);
  for (auto each = first; each != last; ++each) {
    if (each->second != first->second) {
      return absl::InvalidArgumentError(
          absl::StrCat("sessions have loaded different models of the name '",
                       name, "': name one by its hash (rknnctl models), '",
                       base::ToHex(first->second), "' for one"));
    }
  }
  return ServedModel{name, kOnlyVersion, first->second};
}

void ModelDirectory::Find(const std::string& name, const std::string& version,
                          Found found) {
  absl::StatusOr<ServedModel> known = parts_.repository->Find(name, version);
  if (known.ok() || !absl::IsNotFound(known.status())) {
    return found(std::move(known));
  }
  if (!version.empty() && version != kOnlyVersion) {
    return found(std::move(known));
  }
  if (const auto id = ParseHash(name)) {
    return found(ServedModel{name, kOnlyVersion, *id});
  }
  {
    const base::MutexLock lock(mutex_);
    if (fresh_ && parts_.clock->Now() - refreshed_ < kFresh) {
      known = Pick(names_, name);
    }
  }
  if (known.ok()) return found(std::move(known));
  Refresh([self = shared_from_this(), name, found = std::move(found)] {
    absl::StatusOr<ServedModel> picked = Unknown(name);
    {
      const base::MutexLock lock(self->mutex_);
      picked = Pick(self->names_, name);
    }
    found(std::move(picked));
  });
}

void ModelDirectory::List(Listed listed) {
  Refresh([self = shared_from_this(), listed = std::move(listed)] {
    std::vector<Repository::Entry> entries = self->parts_.repository->Index();
    {
      const base::MutexLock lock(self->mutex_);
      for (const auto& [name, id] : self->names_) {
        const bool hidden = std::any_of(
            entries.begin(), entries.end(),
            [&name = name](const auto& entry) { return entry.name == name; });
        if (!hidden) {
          entries.push_back({name, kOnlyVersion, "READY", "of a session"});
        }
      }
    }
    listed(std::move(entries));
  });
}

void ModelDirectory::Refresh(std::function<void()> done) {
  bool stopped = false;
  {
    const base::MutexLock lock(mutex_);
    stopped = stopped_;
    if (!stopped) {
      waiting_.push_back(std::move(done));
      if (waiting_.size() > 1) return;
      // Under the lock: Stop says that nothing is posted after it.
      parts_.loop->Post([weak = weak_from_this()] {
        if (const auto self = weak.lock()) self->OnLoop();
      });
    }
  }
  if (stopped) done();
}

void ModelDirectory::OnLoop() {
  Names names;
  {
    const base::MutexLock lock(mutex_);
    if (stopped_) return;
  }
  const std::set<core::ModelId> used = UsedByClients(*parts_.service);
  for (const core::ModelReport& model : parts_.service->Models()) {
    if (!model.preloaded && !used.contains(model.id)) continue;
    // As a message can tell it: a file's name may be any bytes.
    names.emplace(core::Utf8(std::filesystem::path(model.name).stem().string()),
                  model.id);
  }
  std::vector<std::function<void()>> waiting;
  {
    const base::MutexLock lock(mutex_);
    names_ = std::move(names);
    refreshed_ = parts_.clock->Now();
    fresh_ = true;
    waiting.swap(waiting_);
  }
  for (auto& done : waiting) {
    if (!parts_.elsewhere(done)) done();
  }
}

void ModelDirectory::Stop() {
  std::vector<std::function<void()>> waiting;
  {
    const base::MutexLock lock(mutex_);
    stopped_ = true;
    waiting.swap(waiting_);
  }
  for (const auto& done : waiting) done();
}

}  // namespace rknnd::transport
