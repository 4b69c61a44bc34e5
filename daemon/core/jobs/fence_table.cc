// See the header.

#include "daemon/core/jobs/fence_table.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace rknnd::core {

bool FenceTable::Add(Fence fence) {
  const uint32_t number = fence.number;
  auto added = std::make_shared<Fence>(std::move(fence));
  base::MutexLock lock(mutex_);
  // Not emplace: what is refused is freed outside the lock, by `added`.
  if (fences_.contains(number)) return false;
  fences_[number] = std::move(added);
  return true;
}

bool FenceTable::Remove(uint32_t number) {
  std::shared_ptr<Fence> removed;
  base::MutexLock lock(mutex_);
  const auto found = fences_.find(number);
  if (found == fences_.end()) return false;
  removed = std::move(found->second);
  fences_.erase(found);
  return true;
}

void FenceTable::Clear() {
  std::map<uint32_t, std::shared_ptr<Fence>> fences;
  base::MutexLock lock(mutex_);
  fences.swap(fences_);
}

size_t FenceTable::size() const {
  base::MutexLock lock(mutex_);
  return fences_.size();
}

absl::Status FenceTable::Find(const JobSubmission& submission,
                              JobFences* fences) const {
  base::MutexLock lock(mutex_);
  // Those that are told of the end first: they are told of a refusal, too.
  absl::Status found =
      Find(submission.fence_out, true, "fence_out", &fences->out);
  found.Update(Find(submission.notify, true, "notify", &fences->notify));
  found.Update(Find(submission.fence_in, false, "fence_in", &fences->in));
  return found;
}

absl::Status FenceTable::Find(uint32_t number, bool out, const char* role,
                              std::shared_ptr<Fence>* fence) const {
  if (number == 0) return absl::OkStatus();
  const auto found = fences_.find(number);
  if (found == fences_.end()) {
    return absl::NotFoundError(
        absl::StrCat(role, " ", number,
                     " is not registered in this session: register a fence "
                     "before the run that names it"));
  }
  if (found->second->out != out) {
    return absl::InvalidArgumentError(absl::StrCat(
        role, " ", number, " was registered to ",
        out ? "be waited for and cannot be signalled"
            : "be signalled at the end of runs and cannot be waited for"));
  }
  *fence = found->second;
  return absl::OkStatus();
}

}  // namespace rknnd::core
