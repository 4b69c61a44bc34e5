// What a job waits for and whom it tells of its end. Part of what a job holds
// (job.h).

#ifndef DAEMON_CORE_JOBS_JOB_FENCES_H_
#define DAEMON_CORE_JOBS_JOB_FENCES_H_

#include <cstdint>
#include <memory>
#include <utility>

#include "daemon/core/terms/types.h"

namespace rknnd::core {

class FenceWaits;

// A job's wait for a fence; ends with this object, which therefore goes outside
// every lock. Thread: any, one at a time.
class FenceWait {
 public:
  FenceWait() = default;
  FenceWait(FenceWaits* waits, uint64_t token) : waits_(waits), token_(token) {}
  FenceWait(FenceWait&& other) noexcept
      : waits_(std::exchange(other.waits_, nullptr)), token_(other.token_) {}
  FenceWait& operator=(FenceWait&& other) noexcept {
    if (this != &other) {
      End();
      waits_ = std::exchange(other.waits_, nullptr);
      token_ = other.token_;
    }
    return *this;
  }
  FenceWait(const FenceWait&) = delete;
  FenceWait& operator=(const FenceWait&) = delete;
  ~FenceWait() { End(); }

  [[nodiscard]] uint64_t token() const { return token_; }
  // The job is not to be touched for its fence any more. Under the lock of its
  // session's jobs, before its memory becomes another job's.
  void Forget();

 private:
  void End();

  FenceWaits* waits_ = nullptr;  // null: there is no wait
  uint64_t token_ = 0;
};

// All null for most jobs.
struct JobFences {
  std::shared_ptr<Fence> in, out, notify;
  FenceWait wait;
};

}  // namespace rknnd::core

#endif  // DAEMON_CORE_JOBS_JOB_FENCES_H_
