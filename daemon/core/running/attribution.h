// Who is charged for a job, and what is remembered of it: one call for each of
// its steps. The runner and the gates call these on the hot path; nothing here
// takes a lock, allocates or waits.
//
//   Begun ----> Left                 it had cores
//     \-> GivenUp --> Left           answered before they came back
//   NotRun                           answered without any

#ifndef DAEMON_CORE_RUNNING_ATTRIBUTION_H_
#define DAEMON_CORE_RUNNING_ATTRIBUTION_H_

#include <atomic>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "base/posix/clock.h"
#include "daemon/core/jobs/job.h"
#include "daemon/core/reports/recorder.h"
#include "daemon/core/terms/types.h"
#include "driver/device.h"

namespace rknnd::core {

// Thread: any. Jobs are their caller's, with what they hold.
class Attribution {
 public:
  explicit Attribution(std::shared_ptr<Recorder> recorder)
      : recorder_(std::move(recorder)) {}

  // It has the cores job.granted, since `now`.
  void Begun(const Job& job, base::Nanoseconds now);
  // It has begun, was answered with `code`, and its cores are still busy with
  // it.
  void GivenUp(const Job& job, absl::StatusCode code, base::Nanoseconds now);
  // Its cores, which it had since `begun`, are back. `answer` is the one that
  // it was given, or is about to be (but for GivenUp). Charges the time to
  // session, context and model, whatever became of the job.
  void Left(const Job& job, const driver::JobResult& result,
            base::Nanoseconds begun, base::Nanoseconds now,
            const JobCompletion& answer);
  // It is being answered, well or not, by a run of its own. (Its session counts
  // answers by itself.)
  static void CountAnswer(RunContext& context, const JobCompletion& answer) {
    if (!answer.status.ok()) return;
    context.use.CountJob(answer.queue, answer.run);
    context.model()->use.CountJob(answer.queue, answer.run);
  }
  // It was in the queue and is answered with `code`; ABORTED: it was dropped,
  // and counts as a drop.
  void NotRun(const Job& job, absl::StatusCode code, base::Nanoseconds now);

  // Frames dropped, and jobs answered by another session's run, since the
  // start.
  [[nodiscard]] uint64_t drops() const { return drops_.load(); }
  [[nodiscard]] uint64_t shared() const { return shared_.load(); }
  void CountShared() { shared_.fetch_add(1, std::memory_order_relaxed); }

  [[nodiscard]] Recorder& recorder() const { return *recorder_; }
  [[nodiscard]] const std::shared_ptr<Recorder>& recorder_ptr() const {
    return recorder_;
  }

 private:
  const std::shared_ptr<Recorder> recorder_;
  std::atomic<uint64_t> drops_{0}, shared_{0};
};

}  // namespace rknnd::core

#endif  // DAEMON_CORE_RUNNING_ATTRIBUTION_H_
