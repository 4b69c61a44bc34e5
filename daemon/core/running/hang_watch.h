// Which job each core has, and since when: for the moment when one of them does
// not come back. The runner notes jobs here as they begin and end, on the hot
// path, and looks through all of it when the alarm of Expiry goes off. The
// hanging job's client is answered by job_ends.h; its core is the device's to
// recover.

#ifndef DAEMON_CORE_RUNNING_HANG_WATCH_H_
#define DAEMON_CORE_RUNNING_HANG_WATCH_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/posix/clock.h"
#include "base/posix/mutex.h"
#include "daemon/core/jobs/expiry.h"
#include "daemon/core/jobs/job.h"
#include "daemon/core/terms/events.h"
#include "daemon/core/terms/types.h"

namespace rknnd::core {

// What an operator is told of a job that does not end, or ends after all.
struct HangReport {
  std::string holder;  // "session 7 (pid 100 'cam')"
  std::string model, model_hash;
  SessionId session = 0;
  uint32_t context = 0;
  uint64_t frame = 0;
  uint32_t core = 0, cores = 0;  // the lowest of them; all, as bits
  base::Nanoseconds limit = 0, ran = 0;
  bool ended = false;  // it had been reported, and its cores are back
};

// A line for the daemon's log, and what it is about but for the client.
std::string Describe(const HangReport& report);
EventFields FieldsOf(const HangReport& report);

// The look at all cores comes once in as much time as a job may take, and only
// while jobs run; a job costs two locks that nobody else wants.
//
// Thread: any. Its locks are leaves.
class HangWatch {
 public:
  // `limit`: what a job may take on its core at least (HangLimit).
  HangWatch(base::Nanoseconds limit, Expiry* expiry)
      : limit_(limit), expiry_(expiry) {}

  // Jobs by the lowest of their cores, whose token they have.
  void Begin(Job* job, base::Nanoseconds now);
  // True when the job had been found hanging; before it is retired.
  bool End(Job* job);

  struct Hanging {
    Expiry::Due job;
    HangReport report;
  };
  // Those that have become so since the last look. Sets the time of the next.
  std::vector<Hanging> Look(base::Nanoseconds now);

  [[nodiscard]] base::Nanoseconds limit() const { return limit_; }
  // So many in all.
  [[nodiscard]] uint64_t found() const { return found_.load(); }
  // Cores whose job hangs at present: all of a gang's.
  [[nodiscard]] uint32_t hanging();
  static HangReport ReportOf(const Job& job, base::Nanoseconds limit,
                             base::Nanoseconds now);

 private:
  // Apart: workers of different cores share no cache line for it.
  struct alignas(64) Core {
    base::Mutex mutex;
    Job* job RKNND_GUARDED_BY(mutex) = nullptr;
    bool found RKNND_GUARDED_BY(mutex) = false;
  };

  const base::Nanoseconds limit_;
  Expiry* const expiry_;
  // Whether Expiry knows when to look next. Set by who begins a job and finds
  // it false; cleared by a look, before it looks.
  std::atomic<bool> watching_{false};
  std::atomic<uint64_t> found_{0};
  std::array<Core, 32> cores_;  // the service opens no device with more
};

}  // namespace rknnd::core

#endif  // DAEMON_CORE_RUNNING_HANG_WATCH_H_
