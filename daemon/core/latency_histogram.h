// How long one session's jobs took from submission to answer: what percentiles
// over any interval are made of, by the difference of two looks.

#ifndef DAEMON_CORE_LATENCY_HISTOGRAM_H_
#define DAEMON_CORE_LATENCY_HISTOGRAM_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

#include "base/posix/clock.h"
#include "base/posix/latency_buckets.h"

namespace rknnd::core {

// Thread: any. Adding is one relaxed addition. Counts go on from 0 after 2^32,
// as differences of them do not mind.
class LatencyHistogram {
 public:
  void Add(base::Nanoseconds total) {
    counts_[base::LatencyBucketOf(total)].fetch_add(1,
                                                    std::memory_order_relaxed);
  }
  // By bucket (base/posix/latency_buckets.h), without those above the longest;
  // empty: none yet.
  [[nodiscard]] std::vector<uint32_t> counts() const;

 private:
  std::array<std::atomic<uint32_t>, base::kLatencyBuckets> counts_{};
};

}  // namespace rknnd::core

#endif  // DAEMON_CORE_LATENCY_HISTOGRAM_H_
