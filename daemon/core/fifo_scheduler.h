// The first scheduler: oldest job first, whoever it belongs to.

#ifndef DAEMON_CORE_FIFO_SCHEDULER_H_
#define DAEMON_CORE_FIFO_SCHEDULER_H_

#include <cstdint>
#include <vector>

#include "base/posix/mutex.h"
#include "daemon/core/scheduler.h"

namespace rknnd::core {

// Contexts that can run stand in one list per core mask (each core, and any
// core), ordered by the age of their oldest job, so that a busy core hides only
// the list of those who insist on it. Equal histories give equal turns.
// Thread: any. One lock, a leaf.
class FifoScheduler final : public Scheduler {
 public:
  // Job::cores is one core's bit or those of all `cores`.
  FifoScheduler(uint32_t cores, uint32_t jobs_per_context);

  bool Enqueue(Job* job) override;
  Turn TakeNext() override;
  bool Release(RunContext& context, uint32_t core) override;
  Job* Cancel(RunContext& context) override;
  [[nodiscard]] SchedulerCounts counts() const override;

 private:
  struct ReadyList {
    RunContext* first = nullptr;
    RunContext* last = nullptr;
  };

  // The list of contexts whose oldest job allows the same cores as `job`.
  ReadyList& ListOf(const Job& job) RKNND_REQUIRES(mutex_);
  void InsertReady(RunContext& context) RKNND_REQUIRES(mutex_);
  void RemoveReady(RunContext& context) RKNND_REQUIRES(mutex_);
  [[nodiscard]] bool AnyRunnable() const RKNND_REQUIRES(mutex_);
  // A free core for a job that takes any: one that nobody waits for, if there
  // is one.
  [[nodiscard]] uint32_t ChooseCore() const RKNND_REQUIRES(mutex_);

  const uint32_t cores_;
  const uint32_t jobs_per_context_;

  mutable base::Mutex mutex_;
  // One per core, then the one for any core.
  std::vector<ReadyList> ready_ RKNND_GUARDED_BY(mutex_);
  std::vector<bool> busy_ RKNND_GUARDED_BY(mutex_);
  uint32_t free_cores_ RKNND_GUARDED_BY(mutex_);
  uint64_t next_ticket_ RKNND_GUARDED_BY(mutex_) = 0;
  SchedulerCounts counts_ RKNND_GUARDED_BY(mutex_);
};

}  // namespace rknnd::core

#endif  // DAEMON_CORE_FIFO_SCHEDULER_H_
