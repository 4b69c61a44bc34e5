#include "driver/soft/timing/pacer.h"

#include <algorithm>

namespace rknnd::soft {
namespace {

// No job of this field takes so long; a file that asks for more must not hold a
// core by sleeping.
constexpr base::Nanoseconds kLongest = 60 * base::kSecond;

}  // namespace

Pacer::Pacer(const SocProfile& soc, const SocClock* soc_clock,
             const base::Clock* clock, const PaceOptions& options)
    : soc_(soc),
      soc_clock_(*soc_clock),
      clock_(*clock),
      options_(options),
      cores_(soc.cores) {}

PacedRun Pacer::Start(const PacedJob& job) {
  const base::Nanoseconds now = clock_.Now();
  base::MutexLock lock(mutex_);
  PacedRun run;
  RunConditions& conditions = run.conditions;
  conditions.cores = conditions.busy = 0;
  conditions.clock = soc_clock_.fraction();
  // The cores of a gang start together; the NPU sleeps as a whole.
  base::Nanoseconds free = 0, last = 0;
  for (uint32_t c = 0; c < cores_.size(); ++c) {
    const bool mine = (job.core_mask >> c & 1) != 0;
    last = std::max(last, cores_[c].busy ? now : cores_[c].end);
    if (mine) {
      cores_[c].busy = true;
      free = std::max(free, cores_[c].end);
      ++conditions.cores;
    }
    if (cores_[c].busy) ++conditions.busy;
  }
  const base::Nanoseconds since =
      job.submitted == 0 ? now : std::min(job.submitted, now);
  run.start = std::max(free, since);
  if (now - run.start > options_.lateness) run.start = now;
  if (now - last > options_.idle) run.start = now + options_.wake_cost;
  uint32_t rounds = job.slices;
  if (job.parts > 1) {
    rounds = (job.slices + job.parts - 1) / job.parts;
    conditions.cores = 1;
  }
  const base::Nanoseconds slice = SimulateProgram(job.layers, soc_, conditions);
  run.end =
      run.start +
      (slice > kLongest / std::max(1U, rounds) ? kLongest : rounds * slice);
  for (uint32_t c = 0; c < cores_.size(); ++c) {
    if ((job.core_mask >> c & 1) != 0) cores_[c].end = run.end;
  }
  return run;
}

base::Nanoseconds Pacer::Finish(uint32_t core_mask, base::Nanoseconds end) {
  const base::Nanoseconds done = clock_.Now();
  if (done < end) clock_.SleepUntil(end);
  base::MutexLock lock(mutex_);
  for (uint32_t c = 0; c < cores_.size(); ++c) {
    if ((core_mask >> c & 1) == 0) continue;
    cores_[c].busy = false;
    cores_[c].end = std::max(end, done);
  }
  return std::max(end, done);
}

}  // namespace rknnd::soft
