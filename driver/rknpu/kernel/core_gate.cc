#include "driver/rknpu/kernel/core_gate.h"

#include <bit>

namespace rknnd::rknpu {

uint32_t CoreGate::Enter(uint32_t cores) RKNND_NO_THREAD_SAFETY_ANALYSIS {
  base::MutexLock lock(mutex_);
  const bool gang = std::popcount(cores) > 1;
  if (gang) ++waiting_;
  uint32_t chosen = 0;
  for (;;) {
    if (usable_ == 0 || (gang && (cores & usable_) != cores)) break;
    const bool open = gang ? busy_ == 0 : !gang_ && waiting_ == 0;
    if (!alone_ && open) {
      // The lowest of the free ones stands in for a core that is lost.
      chosen = cores;
      if ((cores & usable_) == 0) {
        const uint32_t free = usable_ & ~busy_;
        chosen = free & (~free + 1);
      }
      if (chosen != 0 && (chosen & busy_) == 0) break;
      chosen = 0;
    }
    changed_.wait(mutex_);
  }
  if (gang) --waiting_;
  busy_ |= chosen;
  if (chosen != 0) gang_ = gang;
  if (gang) changed_.notify_all();
  return chosen;
}

void CoreGate::Leave(uint32_t cores) {
  base::MutexLock lock(mutex_);
  busy_ &= ~cores;
  if (busy_ == 0) gang_ = false;
  changed_.notify_all();
}

void CoreGate::EnterAlone() RKNND_NO_THREAD_SAFETY_ANALYSIS {
  base::MutexLock lock(mutex_);
  ++waiting_;
  while (busy_ != 0 || alone_) changed_.wait(mutex_);
  --waiting_;
  alone_ = true;
}

void CoreGate::LeaveAlone() {
  base::MutexLock lock(mutex_);
  alone_ = false;
  changed_.notify_all();
}

void CoreGate::SetLost(uint32_t cores) {
  base::MutexLock lock(mutex_);
  usable_ &= ~cores;
  changed_.notify_all();
}

uint32_t CoreGate::usable() const {
  base::MutexLock lock(mutex_);
  return usable_;
}

}  // namespace rknnd::rknpu
