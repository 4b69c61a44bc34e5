// Called by gates on workers, under their lock; by the service on the loop.

#include "daemon/core/accounts/job_quota.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/posix/hot_path.h"
#include "daemon/core/accounts/holders.h"

namespace rknnd::core {

std::shared_ptr<JobQuota> JobQuota::Create(std::string tenant) {
  return std::shared_ptr<JobQuota>(new JobQuota(std::move(tenant)));
}

std::unique_ptr<JobQuota::Member> JobQuota::Join(std::string holder) {
  return std::make_unique<Member>(shared_from_this(), std::move(holder));
}

void JobQuota::SetLimit(uint32_t limit, std::string name) {
  base::MutexLock lock(mutex_);
  limit_.store(limit);
  limit_name_ = std::move(name);
}

JobQuota::Member::Member(std::shared_ptr<JobQuota> quota, std::string holder)
    : quota_(std::move(quota)), holder_(std::move(holder)) {
  base::MutexLock lock(quota_->mutex_);
  quota_->members_.insert(this);
}

JobQuota::Member::~Member() {
  base::MutexLock lock(quota_->mutex_);
  quota_->members_.erase(this);
}

RKNND_HOT_PATH bool JobQuota::Member::Take(bool replaces) {
  std::atomic<uint32_t>& all = quota_->jobs_;
  const uint32_t limit = quota_->limit_.load(std::memory_order_relaxed);
  if (limit == 0 || replaces) {
    all.fetch_add(1, std::memory_order_relaxed);
  } else {
    uint32_t taken = all.load(std::memory_order_relaxed);
    do {
      if (taken >= limit) return false;
    } while (!all.compare_exchange_weak(taken, taken + 1,
                                        std::memory_order_relaxed));
  }
  jobs_.fetch_add(1, std::memory_order_relaxed);
  return true;
}

RKNND_HOT_PATH void JobQuota::Member::GiveBack() {
  jobs_.fetch_sub(1, std::memory_order_relaxed);
  quota_->jobs_.fetch_sub(1, std::memory_order_relaxed);
}

absl::Status JobQuota::Member::Refusal() const {
  const JobQuota& quota = *quota_;
  std::vector<Holding> holdings;
  base::MutexLock lock(quota.mutex_);
  for (const Member* member : quota.members_) {
    holdings.push_back({member->holder_, member->jobs_.load()});
  }
  return absl::ResourceExhaustedError(absl::StrCat(
      quota.tenant_, " has ", quota.jobs_.load(),
      " jobs in flight, its limit '", quota.limit_name_, "' is ",
      quota.limit_.load(),
      "; the largest holders: ", NameLargest(std::move(holdings)),
      ". Wait for runs to end before the next, or raise the limit"));
}

}  // namespace rknnd::core
