#include "driver/rknnrt/quarantine.h"

#include <iterator>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace rknnd::rknnrt {
namespace {

constexpr size_t kFewestDigits = 8;

}  // namespace

void Conduct::CountDeath(uint32_t most, const std::string& why) {
  const uint32_t deaths = ++deaths_;
  base::MutexLock lock(mutex_);
  why_ = why;
  if (deaths >= most) is_held_ = true;
}

void Conduct::Forgive() {
  deaths_ = 0;
  is_held_ = false;
}

absl::Status Conduct::Check(const std::string& sha256) const {
  if (!is_held_.load(std::memory_order_relaxed)) return absl::OkStatus();
  base::MutexLock lock(mutex_);
  return absl::FailedPreconditionError(absl::StrCat(
      "model '", name_, "' is in quarantine: it ended ", deaths_.load(),
      " workers of the vendor's library one after the other, the last one so: ",
      why_, ". 'rknnctl quarantine --release ", sha256.substr(0, 12),
      "' lets it try again"));
}

std::shared_ptr<Conduct> Quarantine::Of(const std::string& sha256,
                                        const std::string& name) {
  base::MutexLock lock(mutex_);
  for (auto it = all_.begin(); it != all_.end();) {
    const bool is_idle =
        it->second.use_count() == 1 && it->second->deaths_ == 0;
    it = is_idle ? all_.erase(it) : std::next(it);
  }
  std::shared_ptr<Conduct>& conduct = all_[sha256];
  if (conduct == nullptr) conduct = std::make_shared<Conduct>();
  base::MutexLock inner(conduct->mutex_);
  conduct->name_ = name;
  return conduct;
}

std::vector<driver::QuarantinedModel> Quarantine::List() const {
  std::vector<driver::QuarantinedModel> list;
  base::MutexLock lock(mutex_);
  for (const auto& [sha256, conduct] : all_) {
    if (!conduct->is_held_) continue;
    base::MutexLock inner(conduct->mutex_);
    list.push_back(
        {sha256, conduct->name_, conduct->why_, conduct->deaths_.load()});
  }
  return list;
}

absl::Status Quarantine::Release(const std::string& sha256) {
  base::MutexLock lock(mutex_);
  std::shared_ptr<Conduct> found;
  int count = 0;
  for (const auto& [whole, conduct] : all_) {
    if (!conduct->is_held_ || !absl::StartsWith(whole, sha256)) continue;
    found = conduct;
    ++count;
  }
  if (sha256.size() < kFewestDigits || count == 0) {
    return absl::NotFoundError(absl::StrCat(
        "no model in quarantine has a hash that begins with '", sha256,
        "': 'rknnctl quarantine' shows them; 8 digits are needed at least"));
  }
  if (count > 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the hashes of ", count, " models in quarantine begin with '", sha256,
        "': give more digits"));
  }
  found->Forgive();
  return absl::OkStatus();
}

}  // namespace rknnd::rknnrt
