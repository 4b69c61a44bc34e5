// What models on their way in, and dumps and traces on their way out, may hold
// of this machine's memory, of all remote sessions together: they lie in files
// without a disk, which no session pays for yet, or any more. Charged byte by
// byte as they come, so that announcing costs the others nothing.

#ifndef DAEMON_TRANSPORT_GRPC_SESSION_TRANSFER_BUDGET_H_
#define DAEMON_TRANSPORT_GRPC_SESSION_TRANSFER_BUDGET_H_

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/posix/mutex.h"

namespace rknnd::transport {

// Thread: any.
class TransferBudget {
 public:
  explicit TransferBudget(uint64_t limit) : limit_(limit) {}

  absl::Status Take(uint64_t bytes) {
    base::MutexLock lock(mutex_);
    if (bytes > limit_ - used_) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "transfers of remote clients hold ", used_, " of ", limit_,
          " bytes (limit 'model_bytes'), and there is no room for ", bytes,
          " more: try again when others have ended"));
    }
    used_ += bytes;
    return absl::OkStatus();
  }
  void GiveBack(uint64_t bytes) {
    base::MutexLock lock(mutex_);
    used_ -= bytes;
  }
  [[nodiscard]] uint64_t used() const {
    base::MutexLock lock(mutex_);
    return used_;
  }

 private:
  const uint64_t limit_;
  mutable base::Mutex mutex_;
  uint64_t used_ RKNND_GUARDED_BY(mutex_) = 0;
};

// What one transfer holds, until it is destroyed. Thread: any, one at a time.
class TransferCharge {
 public:
  explicit TransferCharge(std::shared_ptr<TransferBudget> budget)
      : budget_(std::move(budget)) {}
  ~TransferCharge() { budget_->GiveBack(bytes_); }
  TransferCharge(const TransferCharge&) = delete;
  TransferCharge& operator=(const TransferCharge&) = delete;

  absl::Status Grow(uint64_t bytes) {
    absl::Status taken = budget_->Take(bytes);
    if (taken.ok()) bytes_ += bytes;
    return taken;
  }

 private:
  const std::shared_ptr<TransferBudget> budget_;
  uint64_t bytes_ = 0;
};

}  // namespace rknnd::transport

#endif  // DAEMON_TRANSPORT_GRPC_SESSION_TRANSFER_BUDGET_H_
