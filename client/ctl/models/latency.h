// How long many runs took, in little room: buckets that are never wider than
// 1/64 of what they hold.

#ifndef CLIENT_CTL_MODELS_LATENCY_H_
#define CLIENT_CTL_MODELS_LATENCY_H_

#include <array>
#include <cstddef>
#include <cstdint>

namespace rknnd::client {

// Thread: any, one at a time.
class Latency {
 public:
  void Add(uint64_t ns);
  void Add(const Latency& other);

  [[nodiscard]] uint64_t count() const { return count_; }
  [[nodiscard]] double MeanMicroseconds() const;  // exact
  [[nodiscard]] double MaxMicroseconds() const;   // exact
  // The smallest value that `share` (0 to 1) of all do not exceed, to 1/64.
  [[nodiscard]] double PercentileMicroseconds(double share) const;

 private:
  // Values below 64 have a bucket each; above, 64 for each power of two.
  static constexpr size_t kPerPower = 64;
  static constexpr size_t kBuckets = kPerPower * 59;

  static size_t BucketOf(uint64_t ns);
  static uint64_t MiddleOf(size_t bucket);

  std::array<uint64_t, kBuckets> buckets_{};
  uint64_t count_ = 0;
  uint64_t sum_ns_ = 0;
  uint64_t max_ns_ = 0;
};

}  // namespace rknnd::client

#endif  // CLIENT_CTL_MODELS_LATENCY_H_
