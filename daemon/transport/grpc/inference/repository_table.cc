// Names were checked by the repository where they come in; those that Find is
// asked for are any text.

#include "daemon/transport/grpc/inference/repository_table.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status/status.h"
#include "daemon/transport/grpc/inference/repository_folder.h"
#include "daemon/transport/session/event_log.h"

namespace rknnd::transport {

bool RepositoryTable::Newer::operator()(const std::string& a,
                                        const std::string& b) const {
  return IsNewerVersion(a, b);
}

absl::StatusOr<ServedModel> RepositoryTable::Find(
    std::string_view name, std::string_view version) const {
  const base::MutexLock lock(mutex_);
  const auto found = models_.find(name);
  if (found == models_.end()) {
    return absl::NotFoundError(
        absl::StrCat("no model '", Printable(name), "' is loaded"));
  }
  const auto& [known, model] = *found;
  const Version* unavailable = nullptr;
  for (const auto& [number, one] : model.versions) {
    if (!version.empty() && number != version) continue;
    if (one.context != 0) return ServedModel{known, number, one.id};
    if (unavailable == nullptr) unavailable = &one;
  }
  if (unavailable == nullptr && !version.empty() && !model.versions.empty()) {
    return absl::NotFoundError(absl::StrCat(
        "model '", known, "' has no version '", Printable(version),
        "' that is loaded: ask for it by the version_policy in the config of "
        "RepositoryModelLoad"));
  }
  const std::string& why = unavailable != nullptr && model.reason.empty()
                               ? unavailable->reason
                               : model.reason;
  return absl::UnavailableError(absl::StrCat(
      "model '", known,
      "' is not ready: ", why.empty() ? "it is being loaded" : why));
}

std::vector<RepositoryTable::Entry> RepositoryTable::Index() const {
  std::vector<Entry> entries;
  const base::MutexLock lock(mutex_);
  for (const auto& [name, model] : models_) {
    if (model.versions.empty()) {
      entries.push_back({name, "",
                         model.reason.empty() ? "LOADING" : "UNAVAILABLE",
                         model.reason});
    }
    for (const auto& [number, version] : model.versions) {
      const char* const state = version.context != 0 ? "READY"
                                : version.tried      ? "UNAVAILABLE"
                                                     : "LOADING";
      entries.push_back({name, number, state, version.reason});
    }
  }
  return entries;
}

absl::Status RepositoryTable::Add(const std::string& name) {
  const base::MutexLock lock(mutex_);
  if (models_.size() >= kRepositoryModels && !models_.contains(name)) {
    return absl::ResourceExhaustedError(
        absl::StrCat(kRepositoryModels,
                     " models are served or were already: unload those that "
                     "clients sent and nobody uses"));
  }
  models_[name];
  return absl::OkStatus();
}

absl::StatusOr<bool> RepositoryTable::Begin(
    const std::string& name, const std::vector<std::string>& versions) {
  RKNND_RETURN_IF_ERROR(Add(name));
  const base::MutexLock lock(mutex_);
  Model& model = models_[name];
  const bool is_new = model.versions.empty() && model.reason.empty();
  model.reason.clear();
  for (const std::string& number : versions) {
    Version& version = model.versions[number];
    version.tried = false;
    version.reason.clear();
  }
  return is_new;
}

bool RepositoryTable::StillServes(const std::string& name,
                                  const std::string& version,
                                  const core::ModelId& id) {
  const base::MutexLock lock(mutex_);
  const Version& known = models_[name].versions[version];
  return known.context != 0 && known.id == id;
}

uint32_t RepositoryTable::Serve(const std::string& name,
                                const std::string& version,
                                const core::ModelId& id, uint32_t context,
                                bool of_client) {
  const base::MutexLock lock(mutex_);
  Model& model = models_[name];
  model.of_client = of_client;
  Version& served = model.versions[version];
  const uint32_t before = served.context;
  served = {id, context, /*tried=*/true, ""};
  return before;
}

void RepositoryTable::Fail(const std::string& name, const std::string& version,
                           const absl::Status& why) {
  const base::MutexLock lock(mutex_);
  Version& failed = models_[name].versions[version];
  failed.tried = true;
  failed.reason = std::string(why.message());
  if (failed.context != 0) {
    failed.reason = absl::StrCat(
        "what was loaded before is served; loading it again "
        "failed: ",
        failed.reason);
  }
}

void RepositoryTable::Fail(const std::string& name, const absl::Status& why) {
  const base::MutexLock lock(mutex_);
  models_[name].reason = std::string(why.message());
}

std::vector<uint32_t> RepositoryTable::DropOthers(
    const std::string& name, const std::vector<std::string>& versions) {
  std::vector<uint32_t> dropped;
  const base::MutexLock lock(mutex_);
  std::erase_if(models_[name].versions, [&](const auto& known) {
    if (std::find(versions.begin(), versions.end(), known.first) !=
        versions.end()) {
      return false;
    }
    if (known.second.context != 0) dropped.push_back(known.second.context);
    return true;
  });
  return dropped;
}

std::optional<std::vector<uint32_t>> RepositoryTable::Unload(
    const std::string& name) {
  const base::MutexLock lock(mutex_);
  const auto model = models_.find(name);
  if (model == models_.end()) return std::nullopt;
  std::vector<uint32_t> dropped;
  for (auto& [number, version] : model->second.versions) {
    if (version.context != 0) dropped.push_back(version.context);
    version = {{}, 0, /*tried=*/true, "unloaded"};
  }
  model->second.reason = "unloaded";
  // Nothing is left of it that could be loaded again.
  if (model->second.of_client) models_.erase(model);
  return dropped;
}

void RepositoryTable::ForgetUnserved(const std::string& name) {
  const base::MutexLock lock(mutex_);
  const auto model = models_.find(name);
  if (model == models_.end()) return;
  const auto& versions = model->second.versions;
  if (std::none_of(versions.begin(), versions.end(), [](const auto& version) {
        return version.second.context != 0;
      })) {
    models_.erase(model);
  }
}

}  // namespace rknnd::transport
