// Called by the runner around each job, and by workers before they sleep.

#include "daemon/core/running/isolation.h"

#include <bit>
#include <utility>

#include "base/posix/hot_path.h"
#include "daemon/core/contexts/run_context.h"
#include "daemon/core/running/late_wakes.h"

namespace rknnd::core {

Isolation::Isolation(bool on, std::shared_ptr<Arenas> arenas,
                     WorkerWaker* waker)
    : on_(on), arenas_(std::move(arenas)), waker_(waker) {}

RKNND_HOT_PATH void Isolation::Begin(const Job& job) {
  if (!on_) return;
  const uint64_t busy = Busy(job.granted);
  const uint64_t word = cores_.fetch_or(busy) | busy;
  // This thread may be the one that was to clear them.
  if ((Left(word) & ~Left(word >> 32)) != 0) waker_->WakeOne();
  if (job.hold.arena == nullptr) return;
  const RunContext& context = *job.hold.context;
  const SessionId session = context.traits().session;
  const uint64_t bytes =
      context.model()->program(job.hold.bindings->row()).internal_size;
  job.hold.arena->Begin(session, bytes);
  for (const std::shared_ptr<Arena>& arena : job.hold.gang_arenas) {
    if (arena != nullptr) arena->Begin(session, bytes);
  }
}

RKNND_HOT_PATH bool Isolation::End(const JobHold& hold, uint32_t cores) {
  if (!on_) return false;
  if (hold.arena != nullptr) {
    hold.arena->End();
    for (const std::shared_ptr<Arena>& arena : hold.gang_arenas) {
      if (arena != nullptr) arena->End();
    }
    if (hold.context->own_arena() == nullptr) {
      cores_.fetch_or(cores);
    } else {
      // It is no core's: nobody comes by later.
      WakeBeforeLongWork();
      hold.arena->Clear([] { return false; });
    }
  }
  return (Left(cores_.fetch_and(~Busy(cores))) & cores) != 0;
}

void Isolation::ClearIdle() {
  uint32_t left = Left(cores_.load());
  if (left == 0) return;
  WakeBeforeLongWork();
  // Each once: who leaves more from here on looks by itself.
  for (; left != 0; left &= left - 1) {
    ClearCore(static_cast<uint32_t>(std::countr_zero(left)));
  }
}

void Isolation::ClearCore(uint32_t core) {
  const uint32_t bit = uint32_t{1} << core;
  const auto wanted = [this, bit] { return (cores_.load() & Busy(bit)) != 0; };
  // The job that has the core sees at its end what was put back.
  while (!wanted()) {
    if ((Left(cores_.fetch_and(~uint64_t{bit})) & bit) == 0) return;
    // One that is no core's any more goes with its last job.
    const std::shared_ptr<Arena> arena = arenas_->Get(core);
    if (arena == nullptr || arena->Clear(wanted)) return;
    cores_.fetch_or(bit);
  }
}

}  // namespace rknnd::core
