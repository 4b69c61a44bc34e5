#include "client/ctl/models/latency.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace rknnd::client {

void Latency::Add(uint64_t ns) {
  ++buckets_[BucketOf(ns)];
  ++count_;
  sum_ns_ += ns;
  max_ns_ = std::max(max_ns_, ns);
}

void Latency::Add(const Latency& other) {
  for (size_t i = 0; i < kBuckets; ++i) buckets_[i] += other.buckets_[i];
  count_ += other.count_;
  sum_ns_ += other.sum_ns_;
  max_ns_ = std::max(max_ns_, other.max_ns_);
}

double Latency::MeanMicroseconds() const {
  if (count_ == 0) return 0;
  return static_cast<double>(sum_ns_) / static_cast<double>(count_) / 1e3;
}

double Latency::MaxMicroseconds() const {
  return static_cast<double>(max_ns_) / 1e3;
}

double Latency::PercentileMicroseconds(double share) const {
  if (count_ == 0) return 0;
  const auto wanted = static_cast<uint64_t>(
      std::max(1.0, std::ceil(share * static_cast<double>(count_))));
  uint64_t seen = 0;
  for (size_t i = 0; i < kBuckets; ++i) {
    seen += buckets_[i];
    if (seen >= wanted) {
      return static_cast<double>(std::min(MiddleOf(i), max_ns_)) / 1e3;
    }
  }
  return MaxMicroseconds();
}

size_t Latency::BucketOf(uint64_t ns) {
  if (ns < kPerPower) return ns;
  // 6 bits after the leading one choose among the 64 of this power.
  const auto power = static_cast<size_t>(std::bit_width(ns)) - 7;
  return kPerPower * (power + 1) + ((ns >> power) - kPerPower);
}

uint64_t Latency::MiddleOf(size_t bucket) {
  if (bucket < kPerPower) return bucket;
  const size_t power = bucket / kPerPower - 1;
  const uint64_t low = (kPerPower + bucket % kPerPower) << power;
  return low + ((uint64_t{1} << power) >> 1);
}

}  // namespace rknnd::client
