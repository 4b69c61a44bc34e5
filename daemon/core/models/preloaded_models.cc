#include "daemon/core/models/preloaded_models.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace rknnd::core {

const LoadPayer& PreloadedModels::Payer() {
  static const LoadPayer kConfiguration{"the configuration"};
  return kConfiguration;
}

PreloadedModels::PreloadedModels(ModelRegistry* registry, base::Executor* loop,
                                 base::Executor* loader, LogSink* log)
    : registry_(registry), loop_(loop), loader_(loader), log_(log) {}

void PreloadedModels::Set(const std::vector<std::string>& paths,
                          uint64_t largest) {
  std::map<std::string, std::optional<ModelUse>> before;
  std::swap(before, uses_);
  for (const std::string& path : paths) {
    const auto known = before.find(path);
    std::optional<ModelUse>& use = uses_[path];
    if (known != before.end()) use = std::move(known->second);
    if (!use.has_value()) Read(path, largest);
  }
}

void PreloadedModels::Renew(const LoadedModel& model) {
  for (auto& [path, use] : uses_) {
    if (!use.has_value() || use->model().get() != &model) continue;
    use.reset();
    Keep(path, model.id);
  }
}

void PreloadedModels::Stop() {
  presence_.End();
  uses_.clear();
}

uint32_t PreloadedModels::UsesOf(const LoadedModel& model) const {
  uint32_t count = 0;
  for (const auto& [path, use] : uses_) {
    if (use.has_value() && use->model().get() == &model) ++count;
  }
  return count;
}

void PreloadedModels::Read(const std::string& path, uint64_t largest) {
  using Result = absl::StatusOr<std::shared_ptr<ModelLoad>>;
  loader_->Post(
      [path, largest,
       done = presence_.OnLoop<Result>(loop_, [this, path](const Result& read) {
         OnRead(path, read);
       })] { done(ModelLoad::OfFile(path, largest)); });
}

void PreloadedModels::OnRead(const std::string& path,
                             absl::StatusOr<std::shared_ptr<ModelLoad>> read) {
  if (!read.ok()) return Tell(path, read.status());
  const ModelId id = (*read)->id;
  (*read)->payer = Payer();
  (*read)->done = [this, path](const absl::Status& status) {
    Tell(path, status);
  };
  registry_->Load(*std::move(read));
  Keep(path, id);
}

void PreloadedModels::Keep(const std::string& path, const ModelId& id) {
  // A failure has been told of by the attempt.
  registry_->Use(id, Payer(), [this, path](absl::StatusOr<ModelUse> use) {
    const auto wanted = uses_.find(path);
    // Else it need not be kept any more.
    if (wanted != uses_.end() && use.ok()) {
      wanted->second.emplace(*std::move(use));
    }
  });
}

void PreloadedModels::Tell(const std::string& path,
                           const absl::Status& status) const {
  if (status.ok() || log_ == nullptr) return;
  log_->Log(1, absl::StrCat("model '", path, "' is not preloaded: ",
                            std::string(status.message())));
}

}  // namespace rknnd::core
