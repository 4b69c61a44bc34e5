// Who may call SUBMIT now. The driver gets at most one job a core, and a job of
// several cores only while it has no other: with more, a job that waits inside
// the driver and fails there is freed while it is still in a list. After a
// failure one thread is alone with the driver until the NPU is in order.
//
// Cores that failed their self-test are not used: jobs for them run on the
// others, as any core can run any core's commands. Thread: any.

#ifndef DRIVER_RKNPU_KERNEL_CORE_GATE_H_
#define DRIVER_RKNPU_KERNEL_CORE_GATE_H_

#include <cstdint>

#include "base/posix/mutex.h"

namespace rknnd::rknpu {

class CoreGate {
 public:
  explicit CoreGate(uint32_t cores) : usable_((1U << cores) - 1) {}

  // Waits until the job may be submitted, on the cores returned: those asked
  // for, or for a single one another where that is lost. 0: none is left, or
  // not all of several.
  uint32_t Enter(uint32_t cores);
  void Leave(uint32_t cores);
  // Waits until no job is in the driver; nobody enters until LeaveAlone.
  void EnterAlone();
  void LeaveAlone();

  // `cores` are not used from now on.
  void SetLost(uint32_t cores);
  [[nodiscard]] uint32_t usable() const;

 private:
  mutable base::Mutex mutex_;
  base::CondVar changed_;
  uint32_t usable_ RKNND_GUARDED_BY(mutex_);
  uint32_t busy_ RKNND_GUARDED_BY(mutex_) = 0;
  bool gang_ RKNND_GUARDED_BY(mutex_) = false;  // busy_ is one job's
  bool alone_ RKNND_GUARDED_BY(mutex_) = false;
  // Those who wait for an empty driver: no single job overtakes them.
  uint32_t waiting_ RKNND_GUARDED_BY(mutex_) = 0;
};

}  // namespace rknnd::rknpu

#endif  // DRIVER_RKNPU_KERNEL_CORE_GATE_H_
