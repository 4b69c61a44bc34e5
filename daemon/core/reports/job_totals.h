// What became of all jobs since the daemon started, whoever asked for them:
// counters that only grow, for whoever watches the board from outside. Written
// where jobs are answered, read by reports.

#ifndef DAEMON_CORE_REPORTS_JOB_TOTALS_H_
#define DAEMON_CORE_REPORTS_JOB_TOTALS_H_

#include <array>
#include <atomic>
#include <cstdint>

#include "daemon/core/accounts/latency_histogram.h"
#include "daemon/core/terms/types.h"

namespace rknnd::core {

// Thread: any. No lock, no allocation: numbers read together may be of moments
// that are a job apart.
class JobTotals {
 public:
  void Count(const JobCompletion& answer) {
    const auto code = static_cast<size_t>(answer.status.code());
    answers_[code < answers_.size() ? code : kUnknown].fetch_add(
        1, std::memory_order_relaxed);
    if (!answer.status.ok()) return;
    queue_.Add(answer.queue);
    run_.Add(answer.run);
    total_.Add(answer.total);
  }

  [[nodiscard]] uint64_t done() const { return Get(0); }
  [[nodiscard]] uint64_t failed() const {
    uint64_t sum = 0;
    for (size_t code = 1; code < answers_.size(); ++code) sum += Get(code);
    return sum;
  }
  [[nodiscard]] JobTotalsReport Report() const;

 private:
  static constexpr auto kUnknown =
      static_cast<size_t>(absl::StatusCode::kUnknown);

  // One kind of time of all jobs that succeeded.
  struct Times {
    void Add(base::Nanoseconds time) {
      histogram.Add(time);
      sum.fetch_add(time, std::memory_order_relaxed);
    }
    LatencyHistogram histogram;
    std::atomic<base::Nanoseconds> sum{0};
  };

  [[nodiscard]] uint64_t Get(size_t code) const {
    return answers_[code].load(std::memory_order_relaxed);
  }

  std::array<std::atomic<uint64_t>, kStatusCodes> answers_{};
  Times queue_, run_, total_;
};

}  // namespace rknnd::core

#endif  // DAEMON_CORE_REPORTS_JOB_TOTALS_H_
