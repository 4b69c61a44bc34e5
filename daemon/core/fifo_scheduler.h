// The first scheduler: oldest job first, whoever it belongs to.

#ifndef DAEMON_CORE_FIFO_SCHEDULER_H_
#define DAEMON_CORE_FIFO_SCHEDULER_H_

#include <cstdint>
#include <vector>

#include "base/posix/mutex.h"
#include "daemon/core/memory_turns.h"
#include "daemon/core/scheduler.h"

namespace rknnd::core {

// Contexts that can run stand in one list per core mask (each core, any core,
// and each gang), ordered by the age of their oldest job, so that a busy core
// hides only the list of those who insist on it.
//
// The oldest job of a gang keeps each of its cores, as that becomes free, from
// younger jobs: it waits for the older ones and for those that run already, no
// longer. All gangs have core 0, so that only the oldest need be looked at, and
// two never wait for each other. Jobs of a gang that follow each other let
// those pass that came meanwhile. Equal histories give equal turns.
//
//   core 0  | a (old)  |·····| gang          | c (young)
//   core 1  | b (old)        | gang          |            ·: kept for the gang
//
// Thread: any. One lock, a leaf.
class FifoScheduler final : public Scheduler {
 public:
  // Job::cores is one core's bit, those of all `cores`, or as a gang those of
  // the first two or more.
  FifoScheduler(uint32_t cores, uint32_t jobs_per_context);

  bool Enqueue(Job* job) override;
  Turn TakeNext() override;
  bool Release(RunContext& context, uint32_t granted) override;
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
  // The context whose oldest job runs next; null: none can. What has to wait
  // for memory is parked.
  RunContext* NextReady() RKNND_REQUIRES(mutex_);
  // The same as far as cores go.
  [[nodiscard]] RunContext* FindNext() const RKNND_REQUIRES(mutex_);
  // The oldest of a gang; null: none waits.
  [[nodiscard]] RunContext* OldestGang() const RKNND_REQUIRES(mutex_);
  // A free core for a job that takes any: one that nobody waits for, if there
  // is one, and one that is kept for a gang only when there is no other.
  [[nodiscard]] uint32_t ChooseCore() const RKNND_REQUIRES(mutex_);

  const uint32_t cores_;
  const uint32_t jobs_per_context_;

  mutable base::Mutex mutex_;
  // One per core, the one for any core, and those for gangs of two cores and
  // more.
  std::vector<ReadyList> ready_ RKNND_GUARDED_BY(mutex_);
  uint32_t free_ RKNND_GUARDED_BY(mutex_);  // cores, as bits
  MemoryTurns turns_ RKNND_GUARDED_BY(mutex_);
  uint64_t next_ticket_ RKNND_GUARDED_BY(mutex_) = 0;
  SchedulerCounts counts_ RKNND_GUARDED_BY(mutex_);
};

}  // namespace rknnd::core

#endif  // DAEMON_CORE_FIFO_SCHEDULER_H_
