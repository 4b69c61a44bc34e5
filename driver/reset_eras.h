// The times between resets of a device: each job holds the one that it began
// in, so that a reset ends those that run, waits for them, and harms no later
// one.

#ifndef DRIVER_RESET_ERAS_H_
#define DRIVER_RESET_ERAS_H_

#include <atomic>
#include <functional>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "base/posix/mutex.h"

namespace rknnd::driver {

// Thread: any.
class ResetEras {
 public:
  class Era {
   public:
    ~Era() {
      if (done_ != nullptr) done_(absl::OkStatus());
    }
    // Once true, jobs of this era are to end.
    [[nodiscard]] const std::atomic<bool>& over() const { return over_; }

   private:
    friend class ResetEras;
    std::atomic<bool> over_{false};
    std::function<void(absl::Status)> done_;  // written before over_
  };

  [[nodiscard]] std::shared_ptr<const Era> Current() const {
    base::MutexLock lock(mutex_);
    return era_;
  }
  // `done` is called once no job is left that began before.
  void Next(std::function<void(absl::Status)> done) {
    auto ended = std::make_shared<Era>();
    {
      base::MutexLock lock(mutex_);
      era_.swap(ended);
    }
    ended->done_ = std::move(done);
    ended->over_ = true;
  }

 private:
  mutable base::Mutex mutex_;
  std::shared_ptr<Era> era_ RKNND_GUARDED_BY(mutex_) = std::make_shared<Era>();
};

}  // namespace rknnd::driver

#endif  // DRIVER_RESET_ERAS_H_
