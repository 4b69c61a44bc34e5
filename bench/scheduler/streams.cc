// See streams.h.

#include "bench/scheduler/streams.h"

#include <poll.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/posix/clock.h"
#include "bench/common/failure.h"
#include "bench/common/measures.h"
#include "client/include/rknnd.h"

namespace rknnd::bench {
namespace {

struct Counts {
  std::vector<double> ages_ms;
  uint64_t dropped = 0, refused = 0, failed = 0;
};

void TakeAnswers(rknnd_queue queue, bool counted, Counts* counts) {
  rknnd_completion done{};
  while (rknnd_queue_next(queue, &done, sizeof done) == RKNN_SUCC) {
    if (!counted) continue;
    if (done.code == RKNN_SUCC) {
      counts->ages_ms.push_back(static_cast<double>(done.total_ns) * 1e-6);
    } else if (done.code == RKNND_ERR_DROPPED) {
      ++counts->dropped;
    } else {
      ++counts->failed;
    }
  }
}

}  // namespace

nlohmann::json RunStream(const ClientPlan& plan, rknn_context context) {
  rknnd_queue_policy policy{};
  policy.size = sizeof policy;
  policy.policy = plan.work == "newest" ? RKNND_QUEUE_NEWEST : RKNND_QUEUE_FIFO;
  if (rknnd_set_queue_policy(context, &policy) != RKNN_SUCC) {
    Fail("rknnd_set_queue_policy");
  }
  rknnd_queue queue = 0;
  if (rknnd_queue_create(&queue) != RKNN_SUCC) Fail("rknnd_queue_create");
  rknnd_run_options options{};
  options.size = sizeof options;
  options.queue = queue;
  const base::MonotonicClock clock;
  const base::Nanoseconds start = clock.Now();
  const auto at = [start](double seconds) {
    return start + static_cast<base::Nanoseconds>(seconds * 1e9);
  };
  Counts counts;
  uint64_t frames = 0;
  for (base::Nanoseconds next = start; next < at(plan.seconds);
       next += static_cast<base::Nanoseconds>(plan.period_ms * 1e6)) {
    for (base::Nanoseconds now = clock.Now(); now < next; now = clock.Now()) {
      pollfd ready = {rknnd_queue_fd(queue), POLLIN, 0};
      const timespec rest = {0, static_cast<long>(next - now)};
      ppoll(&ready, 1, &rest, nullptr);
      TakeAnswers(queue, now >= at(plan.warm_up), &counts);
    }
    ++frames;
    // A full queue answers at once; a camera has no time to wait for it.
    if (rknnd_submit(context, &options, nullptr) != RKNN_SUCC) {
      ++counts.refused;
    }
  }
  rknnd_queue_destroy(queue);
  return {{"frames", frames},
          {"answered", counts.ages_ms.size()},
          {"dropped", counts.dropped},
          {"refused", counts.refused},
          {"failed", counts.failed},
          {"age_p50_ms", Percentile(counts.ages_ms, 0.5)},
          {"age_p99_ms", Percentile(counts.ages_ms, 0.99)},
          {"age_max_ms", Percentile(counts.ages_ms, 1)}};
}

}  // namespace rknnd::bench
