#include "daemon/core/accounts/latency_histogram.h"

namespace rknnd::core {

std::vector<uint64_t> LatencyHistogram::counts() const {
  std::vector<uint64_t> counts;
  for (size_t i = 0; i < counts_.size(); ++i) {
    const uint64_t count = counts_[i].load(std::memory_order_relaxed);
    if (count == 0) continue;
    counts.resize(i);
    counts.push_back(count);
  }
  return counts;
}

}  // namespace rknnd::core
