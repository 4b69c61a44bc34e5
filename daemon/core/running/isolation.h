// No job begins in internal memory that holds what another session's job left
// there, and what is left is cleared as soon as its core has nothing to do. So
// a session that has a core to itself is not delayed by clearing, and a board
// that idles holds nobody's intermediate results.

#ifndef DAEMON_CORE_RUNNING_ISOLATION_H_
#define DAEMON_CORE_RUNNING_ISOLATION_H_

#include <atomic>
#include <cstdint>
#include <memory>

#include "daemon/core/jobs/job.h"
#include "daemon/core/memory/arenas.h"
#include "daemon/core/terms/types.h"

namespace rknnd::core {

// Who clears: the worker that ended a job, once it finds nothing to run
// (ClearIdle); a worker that is woken for it where nobody else would, as that
// one has another core's job to run or was a thread of the device. Whoever
// clears stops within a piece when its core is given to a job: at most one
// worker is busy for each core, and one always waits.
//
// Costs a job two changes of a word, and a lock nobody holds; memory that a
// program brought is its own to clear. Thread: any.
class Isolation {
 public:
  // `on`: as configured; off, nothing is ever cleared.
  Isolation(bool on, std::shared_ptr<Arenas> arenas, WorkerWaker* waker);

  // The job has cores and arenas, and begins when this returns. What others
  // left is cleared: whom this thread has to wake late is awake by now.
  void Begin(const Job& job);
  // The job of `hold` is over; `cores` are its own until they are given back,
  // which is next. True: some worker is to call ClearIdle. Also for one that
  // was not begun after all.
  bool End(const JobHold& hold, uint32_t cores);

  // This worker has nothing to run: clears what is left on idle cores.
  void ClearIdle();

 private:
  // Of cores_: a job has the core; its arena holds what one left.
  static constexpr uint64_t Busy(uint32_t cores) {
    return uint64_t{cores} << 32;
  }
  static constexpr uint32_t Left(uint64_t word) {
    return static_cast<uint32_t>(word);
  }
  void ClearCore(uint32_t core);

  const bool on_;
  const std::shared_ptr<Arenas> arenas_;
  WorkerWaker* const waker_;
  // Who takes a core's bit of Left sees to its arena, and puts it back with
  // what is left. A job that ends adds its own before its core is idle.
  std::atomic<uint64_t> cores_{0};
};

}  // namespace rknnd::core

#endif  // DAEMON_CORE_RUNNING_ISOLATION_H_
