// The fences of one session, by the numbers its client chose. Filled by the
// loop with fds that the transport has looked at, read where jobs are
// submitted.

#ifndef DAEMON_CORE_JOBS_FENCE_TABLE_H_
#define DAEMON_CORE_JOBS_FENCE_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>

#include "absl/status/status.h"
#include "base/posix/mutex.h"
#include "daemon/core/jobs/job_fences.h"
#include "daemon/core/terms/types.h"

namespace rknnd::core {

// Its lock is a leaf. Thread: any.
class FenceTable {
 public:
  // False when the number is taken; the fence goes then.
  [[nodiscard]] bool Add(Fence fence);
  // False when there is none. Jobs that have it keep it.
  [[nodiscard]] bool Remove(uint32_t number);
  void Clear();
  [[nodiscard]] size_t size() const;

  // Those that a submission names; NOT_FOUND or INVALID_ARGUMENT by number and
  // role, with those that were found. Allocates nothing when it succeeds.
  absl::Status Find(const JobSubmission& submission, JobFences* fences) const;

 private:
  absl::Status Find(uint32_t number, bool out, const char* role,
                    std::shared_ptr<Fence>* fence) const RKNND_REQUIRES(mutex_);

  mutable base::Mutex mutex_;
  // Ordered: a client cannot choose numbers that make look-ups slow.
  std::map<uint32_t, std::shared_ptr<Fence>> fences_ RKNND_GUARDED_BY(mutex_);
};

}  // namespace rknnd::core

#endif  // DAEMON_CORE_JOBS_FENCE_TABLE_H_
