// The NPU's clock as it is now: the highest, unless something throttles it.
// Set by the faults that stand for heat; read when a job is paced.
//
// Thread: any.

#ifndef DRIVER_SOFT_TIMING_SOC_CLOCK_H_
#define DRIVER_SOFT_TIMING_SOC_CLOCK_H_

#include <atomic>

namespace rknnd::soft {

class SocClock {
 public:
  // Runs at this fraction of the highest clock. More than that, or what is no
  // number above 0: at the highest.
  void Set(double fraction) {
    fraction_.store(fraction > 0 && fraction < 1 ? fraction : 1);
  }
  [[nodiscard]] double fraction() const { return fraction_.load(); }

 private:
  std::atomic<double> fraction_{1};
};

}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_TIMING_SOC_CLOCK_H_
