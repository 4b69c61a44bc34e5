// A board whose time is counted, not waited for: contexts of several processes
// submit, workers do what RunnerImpl's do, jobs end when their time is over.
// Whatever a test makes of it, it checks what scheduler.h and scheduler.h
// promise of every turn.

#ifndef DAEMON_CORE_TESTING_SCHEDULER_BOARD_H_
#define DAEMON_CORE_TESTING_SCHEDULER_BOARD_H_

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "base/posix/clock.h"
#include "daemon/core/scheduling/scheduler.h"
#include "daemon/core/testing/fake_device.h"

namespace rknnd::core::testing {

// RKNND_SEED, to replay what a failed test printed, or else 1 to `count`.
std::vector<uint32_t> Seeds(uint32_t count);

class SchedulerBoard {
 public:
  struct Options {
    uint32_t cores = 3;
    uint32_t jobs_per_context = 3;
    SchedulingOptions scheduling;
    // Runs take up to so many percent more or less than expected.
    uint32_t jitter = 0;
    // Some jobs are put back as they are about to begin.
    bool put_back = false;
  };
  struct Program {
    std::shared_ptr<RunContext> context;
    uint32_t share = 0;
    CoreChoice cores;  // of its next job
    base::Nanoseconds run = 0;
    std::deque<Job*> queued;
    base::Nanoseconds last_begun = 0;
    uint64_t begun = 0, ended = 0;
    base::Nanoseconds longest_wait = 0;  // of a job, for its turn
  };
  struct Account {
    SharePolicy policy;
    std::shared_ptr<Share> share;
    base::Nanoseconds had = 0;  // core time of jobs that ended
    base::Nanoseconds has = 0;  // and of those that run, in all
  };

  SchedulerBoard(uint32_t seed, const Options& options);
  ~SchedulerBoard();

  // `user`: whose process it is; null: a user of its own.
  uint32_t AddShare(const SharePolicy& policy = {},
                    std::shared_ptr<ShareGroup> user = nullptr);
  // A context that runs `run` on its cores.
  uint32_t AddContext(uint32_t share, Priority priority,
                      const CoreChoice& cores, base::Nanoseconds run,
                      uint32_t batch = 1);

  // False when its queue is full or its cores are lent.
  bool Submit(uint32_t context, const MemoryRange* alone = nullptr,
              bool held = false);
  void Cancel(uint32_t context);
  void CancelLent(uint32_t context);
  // The queued job at this place.
  void Remove(uint32_t context, size_t place);
  void Unhold(uint32_t context);
  // The oldest queued job ends without a core, if its context runs none.
  void Claim(uint32_t context);
  void SetLent(uint32_t cores);
  // The job that ends next does. False: none runs.
  bool EndNext();
  // Jobs go on ending until `time` from now, and time passes until then.
  void RunFor(base::Nanoseconds time);
  // Workers look for work; called by all of these.
  void Wake();
  // Nobody submits any more: all jobs must have their turn.
  void Finish();

  // When a job has ended and its turn-taking is over: to submit the next.
  std::function<void(uint32_t context)> on_end = nullptr;

  uint32_t Below(size_t limit) {
    return static_cast<uint32_t>(random_() % limit);
  }
  [[nodiscard]] base::Nanoseconds now() const { return clock_.Now(); }
  [[nodiscard]] Program& program(uint32_t context) {
    return programs_[context];
  }
  [[nodiscard]] size_t programs() const { return programs_.size(); }
  [[nodiscard]] Account& account(uint32_t share) { return accounts_[share]; }
  [[nodiscard]] size_t accounts() const { return accounts_.size(); }
  [[nodiscard]] uint32_t free() const;
  [[nodiscard]] size_t running() const { return running_.size(); }
  // Core time with a job since the board was made.
  [[nodiscard]] base::Nanoseconds busy() const;
  // The longest that jobs of one share, class and core mask waited for one of
  // them to be begun with.
  [[nodiscard]] base::Nanoseconds longest_passed_over() const {
    return longest_passed_over_;
  }
  [[nodiscard]] uint64_t begun() const { return begun_; }
  [[nodiscard]] uint64_t backfilled() const { return backfilled_; }
  // Changes with every turn and its core.
  [[nodiscard]] uint64_t history() const { return history_; }
  [[nodiscard]] Scheduler& scheduler() { return scheduler_; }

 private:
  struct Run {
    Job* job = nullptr;
    base::Nanoseconds begin = 0, end = 0;
  };
  using LineKey = std::tuple<uint32_t, uint32_t, uint32_t, bool>;

  Program& Of(const Job& job);
  // Whether the oldest job of it may run as far as its context goes.
  static bool Waits(const Program& program);
  [[nodiscard]] bool WantsMemory(const Job& job) const;
  LineKey KeyOf(const Program& program) const;
  void UpdateLines();
  // Whether another worker is to look for work.
  bool Begin(Job* job);
  // To run before some gang that gathers has its cores.
  [[nodiscard]] bool IsTooLong(const Job& job) const;
  void CheckOrder(const Job& job) const;
  void ExpectNothingIsLeft();
  [[nodiscard]] base::Nanoseconds UntilFree(uint32_t mask) const;

  const Options options_;
  const uint32_t all_;
  std::mt19937 random_;
  base::FakeClock clock_;
  const base::Nanoseconds made_;
  FakeDevice device_;
  Scheduler scheduler_;
  std::deque<Program> programs_;
  std::deque<Account> accounts_;
  std::vector<std::unique_ptr<Job>> jobs_;
  std::vector<Run> running_;
  std::map<LineKey, base::Nanoseconds> passed_over_;  // since when
  uint32_t lent_ = 0;
  base::Nanoseconds ended_busy_ = 0, longest_passed_over_ = 0;
  uint64_t begun_ = 0, backfilled_ = 0, history_ = 0;
};

}  // namespace rknnd::core::testing

#endif  // DAEMON_CORE_TESTING_SCHEDULER_BOARD_H_
