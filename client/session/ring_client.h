// The client's half of the submission ring (proto/wire/ring.h): who has which
// slot, and the two steps of a run, Submit and Wait. Many threads of one
// process run at the same time; the lock is held while an entry is written and
// never while a run is waited for. Nothing is allocated after construction.

#ifndef CLIENT_SESSION_RING_CLIENT_H_
#define CLIENT_SESSION_RING_CLIENT_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "base/posix/clock.h"
#include "base/posix/expected.h"
#include "base/posix/mutex.h"
#include "proto/wire/ring.h"

namespace rknnd::client {

// A job on its way: a slot, and the number that slot's completion will carry.
struct Ticket {
  uint32_t slot = 0;
  uint32_t sequence = 0;
};

// What a completion says, copied out of the ring.
struct Answer {
  base::Code code = base::Code::kUnknown;
  uint64_t queue_ns = 0;
  uint64_t run_ns = 0;
  uint64_t total_ns = 0;
  uint32_t core = 0;
  uint32_t drops = 0;
  std::string text;  // empty on success
};

// Thread: any.
class RingClient {
 public:
  // A client waits in slices of this, and looks at the socket between two: the
  // death of the daemon is seen that late at most.
  static constexpr base::Nanoseconds kSlice = 20 * base::kMillisecond;

  // Both must stay as long as this. `doorbell` is an eventfd.
  RingClient(wire::Ring* ring, int doorbell);

  // Hands one job to the daemon. `job` needs context, frame and timeout. With
  // all slots in use it waits, one slice at most; empty: none came free.
  std::optional<Ticket> Submit(const wire::Submission& job);

  // Sleeps until the job is done or `timeout` is over; whether it is done.
  bool Wait(const Ticket& ticket, base::Nanoseconds timeout);

  // The answer of a job that is done; its slot is free again.
  Answer Take(const Ticket& ticket);

  // Nobody waits for this job any more. Its slot comes free with its answer.
  void Abandon(const Ticket& ticket);

  // Shows the daemon what was copied for `context`, in all. No system call. A
  // process with more contexts than there are records keeps the rest to itself.
  void ShowCopies(uint32_t context, uint64_t to_device_inputs_set,
                  uint64_t from_device_outputs_get);
  // The context is gone; its record is another's.
  void ForgetCopies(uint32_t context);

 private:
  [[nodiscard]] bool IsDone(const Ticket& ticket) const;
  void CollectAbandoned() RKNND_REQUIRES(mutex_);
  void FreeSlot(uint32_t slot) RKNND_REQUIRES(mutex_);

  wire::Ring* const ring_;
  const int doorbell_;

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
