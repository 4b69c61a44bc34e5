// Jobs by the time at which they must have been answered, and the one alarm
// that is set for the earliest. Jobs are put in when they enter and taken out
// when they are answered (session_jobs.h), on the hot path; the runner takes
// those that are due.

#ifndef DAEMON_CORE_JOBS_EXPIRY_H_
#define DAEMON_CORE_JOBS_EXPIRY_H_

#include <cstdint>
#include <memory>
#include <optional>

#include "base/posix/clock.h"
#include "base/posix/mutex.h"
#include "daemon/core/jobs/job.h"
#include "daemon/core/terms/types.h"

namespace rknnd::core {

// The alarm is lazy: it is set when a time comes that is earlier than what it
// is set for, and left where it is when that job is answered in time. Then it
// goes off for nothing, once, and is set for whoever is first by then. A stream
// of frames that each have 100 ms sets it ten times a second, whatever its
// rate; no jobs, no alarm.
//
// A pairing heap, linked through the jobs: putting in is a comparison, taking
// out is logarithmic (amortised), and nothing is ever allocated.
//
// Thread: any. Lock order: that of a session's jobs, then this one, a leaf; the
// waker is called without it.
class Expiry {
 public:
  explicit Expiry(WorkerWaker* waker) : waker_(waker) {}
  Expiry(const Expiry&) = delete;
  Expiry& operator=(const Expiry&) = delete;

  // From now on `job`, which is in flight and not in, is due at `when`. True
  // when Arm() must be called for it, once no lock is held.
  [[nodiscard]] bool Add(Job* job, base::Nanoseconds when);
  // A job that was put in and has been taken, or not.
  void Remove(Job* job);

  // The hang watch wants a look at `when`, too. As Add.
  [[nodiscard]] bool WatchAt(base::Nanoseconds when);
  // Sets the alarm if it is needed earlier than it is set for.
  void Arm();

  // The time that the alarm is for, or should have been; kNever: none is.
  [[nodiscard]] base::Nanoseconds next() const;
  // The alarm went off, or somebody thinks so: followed by TakeDue until there
  // is none, by a look of the hang watch, and by Arm.
  void BeginExpiring();
  // A job by what is true of it whatever becomes of it meanwhile.
  struct Due {
    std::shared_ptr<SessionJobs> jobs;
    uint32_t slot = 0;
    uint64_t serial = 0;
  };
  // Takes the first that is due; nothing when there is none.
  std::optional<Due> TakeDue(base::Nanoseconds now);

 private:
  void Unlink(Job* job) RKNND_REQUIRES(mutex_);
  [[nodiscard]] base::Nanoseconds Next() const RKNND_REQUIRES(mutex_);

  WorkerWaker* const waker_;

  mutable base::Mutex mutex_;
  Job* first_ RKNND_GUARDED_BY(mutex_) = nullptr;
  base::Nanoseconds watch_ RKNND_GUARDED_BY(mutex_) = kNever;
  base::Nanoseconds armed_ RKNND_GUARDED_BY(mutex_) = kNever;
};

}  // namespace rknnd::core

#endif  // DAEMON_CORE_JOBS_EXPIRY_H_
