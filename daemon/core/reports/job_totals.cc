#include "daemon/core/reports/job_totals.h"

namespace rknnd::core {

JobTotalsReport JobTotals::Report() const {
  const auto report = [](const Times& times) {
    return TimesReport{times.histogram.counts(),
                       times.sum.load(std::memory_order_relaxed)};
  };
  JobTotalsReport totals;
  for (size_t code = 0; code < answers_.size(); ++code) {
    totals.answers[code] = Get(code);
  }
  totals.queue = report(queue_);
  totals.run = report(run_);
  totals.total = report(total_);
  return totals;
}

}  // namespace rknnd::core
