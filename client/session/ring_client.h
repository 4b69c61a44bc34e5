// The client's half of the submission ring (proto/wire/ring.h): who has which
// slot, and the two steps of a run, Submit and Wait. Many threads of one
// process run at the same time; the lock is held while an entry is written and
// never while a run is waited for. Nothing is allocated after construction.

#ifndef CLIENT_SESSION_RING_CLIENT_H_
#define CLIENT_SESSION_RING_CLIENT_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

#include "base/posix/clock.h"
#include "base/posix/mutex.h"
#include "base/posix/spinning.h"
#include "base/values/expected.h"
#include "proto/wire/ring.h"

namespace rknnd::client {

// A job on its way: a slot, and the number that slot's completion will carry.
struct Ticket {
  uint32_t slot = 0;
  uint32_t sequence = 0;
  uint32_t pace = 0;  // of RingClient: how long jobs of its kind take
};

// What a completion says, copied out of the ring.
struct Answer {
  base::Code code = base::Code::kUnknown;
  uint64_t queue_ns = 0;
  uint64_t run_ns = 0;
  uint64_t total_ns = 0;
  uint32_t core = 0;
  uint32_t drops = 0;
  uint32_t count = 0;  // of a kCancel
  std::string text;    // empty on success
};

// What was agreed on at the session's begin.
struct RingPolicy {
  // Each end says in the ring that it waits (kFeatureSpin).
  bool marks_waits = false;
  // So long at most a thread waits awake; 0: not at all.
  base::Nanoseconds spin = 0;
  // There is one CPU for both ends.
  bool one_cpu = false;
  // After which sequences go on. Tests begin where they are about to wrap.
  uint32_t last_sequence = 0;
};

// Thread: any.
class RingClient {
 public:
  // A client waits in slices of this, and looks at the socket between two: the
  // death of the daemon is seen that late at most.
  static constexpr base::Nanoseconds kSlice = 20 * base::kMillisecond;
  // On their way at a time. The last slot is for taking them back: runs that
  // wait for what never comes would keep it.
  static constexpr uint32_t kMostRuns = wire::kRingEntries - 1;

  // Both must stay as long as this. `doorbell` is an eventfd.
  RingClient(wire::Ring* ring, int doorbell, const RingPolicy& policy = {});

  // Hands one entry to the daemon, whose slot and sequence are set here. With
  // all slots in use it waits, one slice at most; empty: none came free for it.
  std::optional<Ticket> Submit(const wire::Submission& job);
  // The same without waiting, and the waiting alone.
  std::optional<Ticket> TrySubmit(const wire::Submission& job);
  void AwaitSlot();

  // So many entries were written, since ever; and whether the daemon has taken
  // that many: what is asked of it later finds them as they were written.
  uint32_t written();
  [[nodiscard]] bool HasTaken(uint32_t written) const;

  [[nodiscard]] bool IsDone(const Ticket& ticket) const;
  // Whether the job was on a core, as far as a daemon says so that is dead now.
  [[nodiscard]] bool HadBegun(const Ticket& ticket) const;
  // Waits until the job is done, `timeout` is over or a wake-up comes that was
  // meant for the slot's last job; whether the job is done. Awake for a moment,
  // where jobs like it have ended within that; then asleep.
  // `now`: of a moment ago, or 0; a look at the time is what it saves.
  bool Wait(const Ticket& ticket, base::Nanoseconds timeout,
            base::Nanoseconds now = 0);

  // The answer of a job that is done; its slot is free again.
  Answer Take(const Ticket& ticket);

  // Nobody waits for this job any more. Its slot comes free with its answer.
  void Abandon(const Ticket& ticket);

  // Shows the daemon what was copied for `context`, in all. No system call. A
  // process with more contexts than there are records keeps the rest to itself.
  void ReportCopies(uint32_t context, uint64_t to_device_inputs_set,
                    uint64_t from_device_outputs_get);
  // The context is gone; its record is another's.
  void ForgetCopies(uint32_t context);

 private:
  // How long jobs of some contexts took of late, and whether waiting for them
  // otherwise than asleep paid off. Threads may write it at once: it is an
  // estimate.
  struct Pace {
    std::atomic<uint32_t> total_ns{0};
    base::SpinHabit habit;
  };
  // Contexts of one pace are few, as numbers of contexts count up.
  static constexpr uint32_t kPaces = 64;

  // Whether the job was done while the caller was awake for a moment, or had
  // given its CPU to others.
  bool WaitAwake(const Ticket& ticket, base::Nanoseconds timeout,
                 base::Nanoseconds now);
  // Sleeps once, until the slot's completion changes; the daemon wakes one.
  void Sleep(const Ticket& ticket, base::Nanoseconds timeout);
  // Runs of this pace take long: what comes next is in no cache.
  void FetchIfCold(uint32_t pace) const;
  // Tells the daemon of an entry, unless a worker is about to see it.
  void Announce();
  // Empty: all slots that it may have are in use.
  std::optional<Ticket> Write(const wire::Submission& job)
      RKNND_REQUIRES(mutex_);
  void CollectAbandoned() RKNND_REQUIRES(mutex_);
  void FreeSlot(uint32_t slot) RKNND_REQUIRES(mutex_);
  void WaitForSlot() RKNND_REQUIRES(mutex_);

  wire::Ring* const ring_;
  const int doorbell_;
  const RingPolicy policy_;
  const base::MonotonicClock clock_;
  std::array<Pace, kPaces> paces_;
  // Threads that sleep on each slot: several may wait for one run.
  std::array<std::atomic<uint32_t>, wire::kRingEntries> sleepers_{};

  base::Mutex mutex_;
  base::CondVar slot_freed_;
  uint32_t waiting_for_slot_ RKNND_GUARDED_BY(mutex_) = 0;
  uint32_t tail_ RKNND_GUARDED_BY(mutex_) = 0;
  // The last sequence of each slot.
  std::array<uint32_t, wire::kRingEntries> sequences_
      RKNND_GUARDED_BY(mutex_){};
  std::array<uint32_t, wire::kRingEntries> free_ RKNND_GUARDED_BY(mutex_);
  uint32_t free_count_ RKNND_GUARDED_BY(mutex_) = wire::kRingEntries;
  std::array<Ticket, wire::kRingEntries> abandoned_ RKNND_GUARDED_BY(mutex_);
  uint32_t abandoned_count_ RKNND_GUARDED_BY(mutex_) = 0;
  // Whose each record is, 0: nobody's. Our own, as with all we decide by.
  std::array<uint32_t, wire::kCopyRecords> copiers_ RKNND_GUARDED_BY(mutex_){};
};

}  // namespace rknnd::client

#endif  // CLIENT_SESSION_RING_CLIENT_H_
