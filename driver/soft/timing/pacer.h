// When the SoC would start a job and end it. With `--pace on` the device asks
// it as each job starts, computes, and then waits for that end.
//
//   core 0   |--- job 1 ---|--- job 2 ---|          modelled
//            | computes |zz| computes |zz|          done
//
// A job that waited starts where the one before it on its cores ended by the
// model: that the worker slept too long must not add up. No job starts before
// it was asked for. A job whose computing takes longer than its modelled time
// is not waited for, and its cores' time goes on from its real end. The times
// told of a job are these: it never seems to take less than by the model.
//
// Thread: any.

#ifndef DRIVER_SOFT_TIMING_PACER_H_
#define DRIVER_SOFT_TIMING_PACER_H_

#include <cstdint>
#include <span>
#include <vector>

#include "base/posix/clock.h"
#include "base/posix/mutex.h"
#include "driver/soft/soc.h"
#include "driver/soft/timing/layer_cost.h"
#include "driver/soft/timing/soc_clock.h"

namespace rknnd::soft {

struct PaceOptions {
  // The kernel driver powers the NPU down this long after its last job.
  base::Nanoseconds idle = 3 * base::kSecond;
  // What the first job after that pays for voltage, clock and page tables. Not
  // published for any SoC; 5 to 20 ms is a guess. Weak, therefore none.
  base::Nanoseconds wake_cost = 0;
  // So much of a wait was a worker that woke up late and handed on the next
  // job: by the model that took no time. What waited for longer was kept from
  // its cores by something else and starts now.
  base::Nanoseconds lateness = 200 * base::kMicrosecond;
};

struct PacedJob {
  uint32_t core_mask = 1;
  std::span<const LayerTime> layers = {};  // of a slice
  uint32_t slices = 1;                     // ProgramInfo::batch
  // Cores that compute slices of their own, instead of sharing out layers.
  uint32_t parts = 1;
  base::Nanoseconds submitted = 0;  // waits since; 0: since now
};

struct PacedRun {
  base::Nanoseconds start = 0, end = 0;  // by the model
  RunConditions conditions = {};
};

class Pacer {
 public:
  // `soc_clock` and `clock` outlive it.
  Pacer(const SocProfile& soc, const SocClock* soc_clock,
        const base::Clock* clock, const PaceOptions& options = {});

  // A job's computing starts now. How much of the DDR it gets is settled here,
  // by how many cores are busy as it starts.
  PacedRun Start(const PacedJob& job);
  // Its computing is done: waits for `end`, if that is still to come, and
  // returns when the job ended: then, or now. Calls the clock without a lock.
  base::Nanoseconds Finish(uint32_t core_mask, base::Nanoseconds end);

 private:
  struct Core {
    base::Nanoseconds end = 0;  // of its last job, by the model
    bool busy = false;
  };

  const SocProfile soc_;
  const SocClock& soc_clock_;
  const base::Clock& clock_;
  const PaceOptions options_;
  base::Mutex mutex_;
  std::vector<Core> cores_ RKNND_GUARDED_BY(mutex_);
};

}  // namespace rknnd::soft

#endif  // DRIVER_SOFT_TIMING_PACER_H_
