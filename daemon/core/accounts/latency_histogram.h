// How long jobs took, from one of their steps to another: what percentiles over
// any interval are made of, by the difference of two looks.

#ifndef DAEMON_CORE_ACCOUNTS_LATENCY_HISTOGRAM_H_
#define DAEMON_CORE_ACCOUNTS_LATENCY_HISTOGRAM_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

#include "base/posix/clock.h"
#include "base/posix/latency_buckets.h"

namespace rknnd::core {

// Thread: any. Adding is one relaxed addition.
class LatencyHistogram {
 public:
  void Add(base::Nanoseconds time) {
    counts_[base::LatencyBucketOf(time)].fetch_add(1,
                                                   std::memory_order_relaxed);
  }
  // By bucket (base/posix/latency_buckets.h), without those above the longest;
  // empty: none yet.
  [[nodiscard]] std::vector<uint64_t> counts() const;

 private:
  std::array<std::atomic<uint64_t>, base::kLatencyBuckets> counts_{};
};

}  // namespace rknnd::core

#endif  // DAEMON_CORE_ACCOUNTS_LATENCY_HISTOGRAM_H_
