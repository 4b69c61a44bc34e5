// Jobs that wait for a fence: from the watcher's token to the job, which may be
// gone by the time the fence is signalled.

#ifndef DAEMON_CORE_RUNNING_FENCE_WAITS_H_
#define DAEMON_CORE_RUNNING_FENCE_WAITS_H_

#include <cstdint>
#include <memory>
#include <unordered_map>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/posix/mutex.h"
#include "daemon/core/jobs/job.h"
#include "daemon/core/jobs/job_fences.h"
#include "daemon/core/scheduling/scheduler.h"
#include "daemon/core/terms/types.h"

namespace rknnd::core {

// A wait, by its token, which is never used again:
//
//   none --Enter--> waiting --Release--------> none     the job may run
//                     |  |
//                     |  +--TakeOut----------> none     the job is the caller's
//                     +--FenceWait::Forget---> none     it ended otherwise
//
// The watcher may know a token for longer than this, and then finds nothing.
// Lock order: that of a session's jobs, this one's, the scheduler's; the
// watcher is called without any. Thread: any.
class FenceWaits {
 public:
  // Both outlive it. `watcher` null: there are no fences.
  FenceWaits(FenceWatcher* watcher, Scheduler* scheduler)
      : watcher_(watcher), scheduler_(scheduler) {}

  [[nodiscard]] bool enabled() const { return watcher_ != nullptr; }

  // Whether a job must wait for the fence: true; false when it is signalled.
  // FAILED_PRECONDITION when it never will be.
  absl::StatusOr<bool> MustWait(const Fence& fence) const;

  // Before `job` is queued with Job::waits_for_fence set.
  [[nodiscard]] FenceWait Enter(Job* job);
  // After that. Not OK: it is not watched, and the job waits still.
  absl::Status Watch(uint64_t token, const std::shared_ptr<Fence>& fence);
  // The fence is signalled. True when some job can run.
  bool Release(uint64_t token);
  // Takes the job out of the scheduler's queue, to be answered by the caller;
  // null when another is about to, or the job does not wait.
  [[nodiscard]] Job* TakeOut(uint64_t token);

  // The job has ended, or will; null: there was none.
  void Signal(const std::shared_ptr<Fence>& fence) const {
    if (fence != nullptr) watcher_->Signal(fence);
  }
  void SignalEnd(const JobFences& fences) const {
    Signal(fences.out);
    Signal(fences.notify);
  }

  // What a job is answered with whose fence was closed too early.
  static absl::Status Closed(uint32_t fence);

 private:
  friend class FenceWait;
  void Forget(uint64_t token);
  void Unwatch(uint64_t token) { watcher_->Unwatch(token); }

  FenceWatcher* const watcher_;
  Scheduler* const scheduler_;
  base::Mutex mutex_;
  uint64_t next_token_ RKNND_GUARDED_BY(mutex_) = 1;
  std::unordered_map<uint64_t, Job*> jobs_ RKNND_GUARDED_BY(mutex_);
};

}  // namespace rknnd::core

#endif  // DAEMON_CORE_RUNNING_FENCE_WAITS_H_
