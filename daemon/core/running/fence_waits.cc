// See the header. What a client's fences do, and when, is its own choice.

#include "daemon/core/running/fence_waits.h"

#include "absl/strings/str_cat.h"
#include "base/posix/hot_path.h"

namespace rknnd::core {

void FenceWait::Forget() {
  if (waits_ != nullptr) waits_->Forget(token_);
}

RKNND_HOT_PATH void FenceWait::End() {
  if (waits_ == nullptr) return;
  waits_->Forget(token_);
  std::exchange(waits_, nullptr)->Unwatch(token_);
}

absl::Status FenceWaits::Closed(uint32_t fence) {
  return absl::FailedPreconditionError(absl::StrCat(
      "fence ", fence,
      " was closed at its other end before it was signalled: the run that it "
      "stands for did not end well, and this one was not begun"));
}

absl::StatusOr<bool> FenceWaits::MustWait(const Fence& fence) const {
  switch (watcher_->Look(fence)) {
    case FenceState::kPending:
      return true;
    case FenceState::kSignalled:
      return false;
    case FenceState::kClosed:
      break;
  }
  return Closed(fence.number);
}

FenceWait FenceWaits::Enter(Job* job) {
  base::MutexLock lock(mutex_);
  const uint64_t token = next_token_++;
  jobs_[token] = job;
  return {this, token};
}

absl::Status FenceWaits::Watch(uint64_t token,
                               const std::shared_ptr<Fence>& fence) {
  absl::Status watched = watcher_->Watch(token, fence);
  if (!watched.ok()) return watched;
  bool gone = false;
  {
    base::MutexLock lock(mutex_);
    gone = !jobs_.contains(token);
  }
  // It ended before the watcher knew it, and nobody else will say so.
  if (gone) Unwatch(token);
  return absl::OkStatus();
}

bool FenceWaits::Release(uint64_t token) {
  base::MutexLock lock(mutex_);
  const auto found = jobs_.find(token);
  if (found == jobs_.end()) return false;
  Job* const job = found->second;
  jobs_.erase(found);
  // Under this lock: the job's memory cannot become another's meanwhile.
  return scheduler_->Unhold(job);
}

Job* FenceWaits::TakeOut(uint64_t token) {
  base::MutexLock lock(mutex_);
  const auto found = jobs_.find(token);
  if (found == jobs_.end()) return nullptr;
  Job* const job = found->second;
  jobs_.erase(found);
  return scheduler_->Remove(job) ? job : nullptr;
}

void FenceWaits::Forget(uint64_t token) {
  base::MutexLock lock(mutex_);
  jobs_.erase(token);
}

}  // namespace rknnd::core
