// Latencies of one kind, and the figures people quote of them.

#ifndef BENCH_HOTPATH_SAMPLES_H_
#define BENCH_HOTPATH_SAMPLES_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace rknnd::bench {

class Samples {
 public:
  void Add(int64_t nanoseconds) { values_.push_back(nanoseconds); }
  [[nodiscard]] size_t size() const { return values_.size(); }
  // In the order they came.
  [[nodiscard]] int64_t at(size_t index) const { return values_[index]; }

  // In microseconds; `share` in 0..1.
  [[nodiscard]] double Percentile(double share) const {
    if (values_.empty()) return 0;
    std::vector<int64_t> sorted = values_;
    const auto rank =
        static_cast<size_t>(share * static_cast<double>(sorted.size() - 1));
    std::nth_element(sorted.begin(),
                     sorted.begin() + static_cast<ptrdiff_t>(rank),
                     sorted.end());
    return static_cast<double>(sorted[rank]) / 1000.0;
  }

 private:
  std::vector<int64_t> values_;
};

}  // namespace rknnd::bench

#endif  // BENCH_HOTPATH_SAMPLES_H_
