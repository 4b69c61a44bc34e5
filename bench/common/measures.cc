// See measures.h.

#include "bench/common/measures.h"

#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "base/posix/clock.h"

namespace rknnd::bench {

double SecondsNow() {
  return static_cast<double>(base::MonotonicClock().Now()) * 1e-9;
}

void SleepFor(double seconds) {
  timespec time{};
  time.tv_sec = static_cast<time_t>(seconds);
  time.tv_nsec =
      static_cast<long>((seconds - static_cast<double>(time.tv_sec)) * 1e9);
  nanosleep(&time, nullptr);
}

double Percentile(std::vector<double> values, double part) {
  if (values.empty()) return 0;
  const auto index =
      static_cast<size_t>(std::ceil(part * static_cast<double>(values.size())));
  const auto place =
      values.begin() + static_cast<ptrdiff_t>(std::max<size_t>(index, 1) - 1);
  std::nth_element(values.begin(), place, values.end());
  return *place;
}

}  // namespace rknnd::bench
