// How much of the cores one user's jobs may have at once. A job that runs keeps
// its core to the end, so that a user whose models take long would leave others
// none: what its running jobs are expected to take is bounded together, and a
// job that does not fit waits until one of them has ended.
//
//   in a line --MayStart: no--> held --End of another--> in a line
//       |
//       +--MayStart: yes, Start--> running --End
//
// A user that runs nothing may always begin one job, and one that is alone on
// the device any number. Processes without a group count for nobody.

#ifndef DAEMON_CORE_SCHEDULING_CORE_BUDGET_H_
#define DAEMON_CORE_SCHEDULING_CORE_BUDGET_H_

#include "absl/functional/function_ref.h"
#include "base/posix/clock.h"
#include "daemon/core/accounts/share.h"
#include "daemon/core/contexts/run_context.h"

namespace rknnd::core {

// Keeps its state in ShareGroup and ContextQueue. Thread: any, under its
// scheduler's lock; allocates nothing.
class CoreBudget {
 public:
  // A context that may run again, to be put into the scheduler's list.
  using Ready = absl::FunctionRef<void(RunContext&)>;

  // `most`: cores x time.
  explicit CoreBudget(base::Nanoseconds most) : most_(most) {}

  // Whether the oldest job of `context` may begin, as far as this goes.
  [[nodiscard]] bool MayStart(const RunContext& context) const;
  // The scheduler took `context` out of its list, because MayStart said no.
  static void Hold(RunContext& context);
  // A job of `context` has cores that it is expected to have for `time` in all.
  static void Start(const RunContext& context, base::Nanoseconds time);
  // It has them no longer; `time` as it was given to Start.
  void End(const RunContext& context, base::Nanoseconds time,
           Ready ready) const;
  // All queued jobs of `context` are about to go.
  static void Forget(RunContext& context);

 private:
  [[nodiscard]] bool Fits(base::Nanoseconds running,
                          const RunContext& context) const;

  const base::Nanoseconds most_;
};

}  // namespace rknnd::core

#endif  // DAEMON_CORE_SCHEDULING_CORE_BUDGET_H_
