// How times of very different lengths are counted in little room: buckets from
// 1 us to 16 s, four for each power of two, the first with all that is shorter,
// the last with all that is longer. The daemon counts by it and rknnctl reads
// such counts, so that both have the same edges. Pure functions.

#ifndef BASE_POSIX_LATENCY_BUCKETS_H_
#define BASE_POSIX_LATENCY_BUCKETS_H_

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/posix/clock.h"

namespace rknnd::base {

inline constexpr size_t kLatencyBuckets = 96;

constexpr size_t LatencyBucketOf(Nanoseconds time) {
  const auto us = static_cast<uint64_t>(std::max<Nanoseconds>(time, 0)) / 1000;
  if (us <= 1) return 0;
  const auto power = static_cast<size_t>(std::bit_width(us)) - 1;
  // The two bits behind the leading one choose among the four of this power.
  const size_t quarter = power >= 2 ? us >> (power - 2) & 3 : us << 1 & 3;
  return std::min(power * 4 + quarter, kLatencyBuckets - 1);
}

// Its shortest time, and that of the next one, in microseconds.
constexpr double LatencyBucketBegin(size_t bucket) {
  const size_t power = bucket / 4;
  return static_cast<double>(uint64_t{1} << power) *
         (1 + static_cast<double>(bucket % 4) / 4);
}

// The time in microseconds that `share` (0 to 1) of all that were counted do
// not exceed, as if each bucket's were spread evenly over it; 0 without any.
inline double LatencyPercentile(std::span<const uint64_t> counts,
                                double share) {
  uint64_t all = 0;
  for (const uint64_t count : counts) all += count;
  if (all == 0) return 0;
  const double wanted = std::clamp(share, 0.0, 1.0) * static_cast<double>(all);
  double seen = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    const auto count = static_cast<double>(counts[i]);
    if (counts[i] == 0 || seen + count < wanted) {
      seen += count;
      continue;
    }
    const double begin = i == 0 ? 0 : LatencyBucketBegin(i);
    const double within = (wanted - seen) / count;
    return begin + within * (LatencyBucketBegin(i + 1) - begin);
  }
  return LatencyBucketBegin(counts.size());
}

}  // namespace rknnd::base

#endif  // BASE_POSIX_LATENCY_BUCKETS_H_
