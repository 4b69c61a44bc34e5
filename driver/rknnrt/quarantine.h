// Models that are not run any more, as each of their last jobs ended a worker:
// by the hash of their bytes, so that loading them again does not help.

#ifndef DRIVER_RKNNRT_QUARANTINE_H_
#define DRIVER_RKNNRT_QUARANTINE_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/posix/mutex.h"
#include "driver/device.h"

namespace rknnd::rknnrt {

// One model's account. Thread: any.
class Conduct {
 public:
  // One of its jobs, or its loading, ended a worker.
  void CountDeath(uint32_t most, const std::string& why);
  // One of its jobs ended as it should.
  void CountGood() {
    if (deaths_.load(std::memory_order_relaxed) != 0) Forgive();
  }
  // FAILED_PRECONDITION once it had so many deaths with nothing good between.
  [[nodiscard]] absl::Status Check(const std::string& sha256) const;

 private:
  friend class Quarantine;
  void Forgive();

  std::atomic<uint32_t> deaths_{0};
  std::atomic<bool> is_held_{false};
  mutable base::Mutex mutex_;
  std::string why_ RKNND_GUARDED_BY(mutex_);
  std::string name_ RKNND_GUARDED_BY(mutex_);
};

// Thread: any.
class Quarantine {
 public:
  // The account of a model, kept when it goes if there is something in it.
  std::shared_ptr<Conduct> Of(const std::string& sha256,
                              const std::string& name);
  [[nodiscard]] std::vector<driver::QuarantinedModel> List() const;
  // Whether it was there. `sha256` may be its first digits, 8 at least, if no
  // other one has these.
  absl::Status Release(const std::string& sha256);

 private:
  mutable base::Mutex mutex_;
  std::map<std::string, std::shared_ptr<Conduct>> all_ RKNND_GUARDED_BY(mutex_);
};

}  // namespace rknnd::rknnrt

#endif  // DRIVER_RKNNRT_QUARANTINE_H_
