// One run for many readers: jobs of several sessions that ask for the same
// (the same model, on the same memory, with the same frame number) and have
// said that they may share (JobSubmission::shared) are answered by one run.
// Gates list such jobs here, the runner asks before it starts one and tells
// when it has ended.
//
// Every job is queued as if there were no others: whichever gets a core first
// runs, by its own class and share, and pays for it; the others are answered
// with what it gave. So nobody waits for another's place in the queue, and
// whatever becomes of one of them (cancelled, dropped, out of time, its program
// dead) leaves the others where they were: queued.
//
//            TakeNext granted it cores:
//   listed --+-- no equal run ------------------> runs into a SharedRun --+
//     ^      +-- one is on its way --> put back, held -+                  |
//     |      +-- one has ended lately --> answered     |                  |
//     |                                                |                  |
//     +----------- it failed, or hangs: let go --------+                  |
//                                                      |                  |
//   answered <--- it ended well: claimed, listed ones and held ones <-----+
//
// Whom it trusts: nobody. Answers are computed into memory that no program
// maps, and copied to each reader. A run that began before a job was submitted
// answers it only if both are of one user: who names a frame's number before
// the frame is there would give others the answer of an older one.

#ifndef DAEMON_CORE_RUNNING_SHARED_RUNS_H_
#define DAEMON_CORE_RUNNING_SHARED_RUNS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/posix/clock.h"
#include "base/posix/event_loop.h"
#include "base/posix/mutex.h"
#include "daemon/core/accounts/ledger.h"
#include "daemon/core/jobs/job.h"
#include "daemon/core/memory/paging.h"
#include "daemon/core/scheduling/scheduler.h"
#include "daemon/core/terms/types.h"
#include "driver/device.h"

namespace rknnd::core {

class TimerQueue;

// Room for the answers of one run, and which run's they are. Its memory is the
// device's while the run is on its way, and then only read.
class SharedRun {
 public:
  SharedRun(const Paging& paging, Charge charge, PagedMemory memory,
            const Job& job);
  ~SharedRun();
  SharedRun(const SharedRun&) = delete;
  SharedRun& operator=(const SharedRun&) = delete;

  // Where the run writes, in the place of what its job has bound.
  [[nodiscard]] std::span<const driver::TensorBinding> outputs() const {
    return outputs_;
  }

 private:
  friend class SharedRuns;
  // idle --Begin--> running --End: well--> kept --too old, Begin--> idle
  //                    |  \--End: failed--> idle
  //                    +--Abandon--> lost --End--> idle
  enum class State : uint8_t { kIdle, kRunning, kLost, kKept };

  const Paging paging_;
  Charge charge_;
  PagedMemory memory_;
  // What it has room for: any run of these, one after the other.
  const std::weak_ptr<const LoadedModel> model_;
  const LoadedModel* const model_name_;  // the same, to compare; may be gone
  const uint32_t row_;
  std::vector<driver::TensorBinding> outputs_;
  std::vector<uint64_t> sizes_;
  uint64_t bytes_ = 0;  // their sum

  // Of the run; guarded by SharedRuns.
  State state_ = State::kIdle;
  uint64_t frame_ = 0;
  std::string key_;   // BindingSet::run_key
  CoreChoice cores_;  // of its job
  SessionId session_ = 0;
  uint32_t user_ = 0;
  uint32_t core_ = 0;
  uint32_t readers_ = 0;           // that copy from it, or are about to
  const Job* job_ = nullptr;       // the one that runs
  base::Nanoseconds granted_ = 0;  // since when that has its cores
  base::Nanoseconds begun_ = 0;    // by our clock, before it reads anything
  base::Nanoseconds started_ = 0, ended_ = 0;
  base::Nanoseconds used_ = 0;  // when it was last begun, ended or copied
};

// Thread: any, but where noted. Lock order: that of a session's jobs, then this
// one, then the scheduler's. Nothing else is called under it.
class SharedRuns : public std::enable_shared_from_this<SharedRuns> {
 public:
  // So long answers a run those who come late: a few frames of a camera.
  static constexpr base::Nanoseconds kKept = 200 * base::kMillisecond;
  // So long its room stays for the next one.
  static constexpr base::Nanoseconds kRoomKept = 5 * base::kSecond;
  // All rooms together: ten cameras' answers of a large detector, six of each.
  static constexpr uint64_t kMostBytes = uint64_t{64} << 20;
  static constexpr size_t kMostRooms = 64;

  struct Parts {
    Paging paging;
    const base::Clock* clock = nullptr;
    TimerQueue* timers = nullptr;
    Scheduler* scheduler = nullptr;
    std::shared_ptr<Account> account;  // limited to kMostBytes
  };
  explicit SharedRuns(Parts parts);

  // Whether runs of such a context can be shared at all: what a program
  // changes, measures or synchronises by itself is its own.
  static bool CanShare(const RunContext& context, const BindingSet& bindings);

  // `job` is about to be queued. The lock of its session's jobs is held.
  void Enter(Job* job);
  // It is about to be retired, whatever became of it.
  void Leave(Job* job);

  enum class Verdict {
    kRun,     // now; into job->hold.shared, where there is one
    kWait,    // it is queued again, and its cores are free
    kAnswer,  // with job->hold.shared
  };
  // `job`, which shares, was granted its cores. May allocate. Thread: worker.
  Verdict Begin(Job* job);

  struct Ending {
    absl::Status status;  // of `job` itself
    // Jobs that its run answers, linked by `next`: out of the queue, without
    // cores, the caller's. Each is for Answer.
    Job* answered = nullptr;
    bool runnable = false;  // some that waited for it can run by themselves
    // How long it had its cores: with what sharing cost beside the run.
    base::Nanoseconds used = 0;
  };
  // The run of `job` into job->hold.shared is over. Thread: worker, device's.
  Ending End(Job* job, const driver::JobResult& result);
  // `job`, which shares and may have a run, is not waited for any more by its
  // own program, or hangs: no other waits for that run. True when some job can
  // run now.
  bool Abandon(const Job& job);
  // Answers `job`, which has not run, with job->hold.shared: fills status,
  // times and core of its completion. Thread: worker, device's.
  void Answer(Job* job, JobCompletion* completion);

  // Gives back rooms that nobody uses, because memory is lacking. False when
  // there is none. Thread: loop.
  bool DropIdle();
  // No room from now on. Thread: loop.
  void Stop();

 private:
  static constexpr size_t kBuckets = 64;

  Job*& BucketOf(const Job& job) RKNND_REQUIRES(mutex_) {
    return listed_[job.submission.frame % kBuckets];
  }
  void List(Job* job) RKNND_REQUIRES(mutex_);
  void Unlist(Job* job) RKNND_REQUIRES(mutex_);
  // Writes what `run` gave to where `job` has bound its own.
  static absl::Status Copy(const SharedRun& run, const Job& job);
  // Whether what `run` gives is what `job` asks for.
  [[nodiscard]] static bool Answers(const SharedRun& run, const Job& job);
  [[nodiscard]] bool Fresh(const SharedRun& run) const;
  // Room for a run of `job`, with nothing in it; null: none.
  std::shared_ptr<SharedRun> FindRoom(const Job& job) RKNND_REQUIRES(mutex_);
  // The one that was used longest ago, taken out; null: all are in use.
  std::shared_ptr<SharedRun> TakeOldest() RKNND_REQUIRES(mutex_);
  std::shared_ptr<SharedRun> MakeRoom(const Job& job);
  void BeginRun(Job* job, const std::shared_ptr<SharedRun>& run,
                base::Nanoseconds granted) RKNND_REQUIRES(mutex_);
  [[nodiscard]] bool IsFree(const SharedRun& run) const;
  // Those that wait for `run` run by themselves. True when one can now.
  bool LetGo(const SharedRun& run) RKNND_REQUIRES(mutex_);
  void ArmTrim();  // Thread: loop.
  void Trim();

  const Parts parts_;
  uint64_t trim_ = 0;  // its timer; 0: none. Thread: loop.

  base::Mutex mutex_;
  bool stopped_ RKNND_GUARDED_BY(mutex_) = false;
  // Jobs that may be answered by others' runs, by frame.
  std::array<Job*, kBuckets> listed_ RKNND_GUARDED_BY(mutex_) = {};
  std::vector<std::shared_ptr<SharedRun>> rooms_ RKNND_GUARDED_BY(mutex_);
};

}  // namespace rknnd::core

#endif  // DAEMON_CORE_RUNNING_SHARED_RUNS_H_
