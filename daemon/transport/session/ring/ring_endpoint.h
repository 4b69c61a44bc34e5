// The daemon's end of one session's submission ring (proto/wire/ring.h). All
// that the client can write there is hostile: entries are copied out before
// they are looked at, no index is trusted, completions are only ever stored.

#ifndef DAEMON_TRANSPORT_SESSION_RING_RING_ENDPOINT_H_
#define DAEMON_TRANSPORT_SESSION_RING_RING_ENDPOINT_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/posix/mapping.h"
#include "base/posix/unique_fd.h"
#include "daemon/core/running/job_gate.h"
#include "daemon/core/terms/types.h"
#include "proto/wire/ring.h"

namespace rknnd::transport {

// Outlives its session: a job that still runs completes into it. Open, Close
// and Drain are called one at a time: its owner has a lock for them, which is
// the session's order.
// Thread: any.
class RingEndpoint final : public core::CompletionSink,
                           public std::enable_shared_from_this<RingEndpoint> {
 public:
  // Entries are counted from `first` on, by both ends: a client takes it from
  // the ring. Tests begin where counters are about to wrap.
  static absl::StatusOr<std::shared_ptr<RingEndpoint>> Create(
      uint32_t first = 0);

  // What the client is given. Borrowed.
  [[nodiscard]] int memory_fd() const { return memory_.get(); }
  // Never read, not even to clear it: its flags are shared with the client,
  // who can make a read block.
  [[nodiscard]] int doorbell_fd() const { return doorbell_.get(); }

  // From now on entries go to `gate`. Once, before the first Drain.
  // `marks_sleepers`: the client says in the ring who sleeps (kFeatureSpin);
  // only those are woken.
  void Open(std::shared_ptr<core::JobGate> gate, bool marks_sleepers = false);
  // No entry is taken any more; jobs in flight still complete.
  void Close();

  struct Drained {
    uint32_t entries = 0;
    // Of these, how many came while a worker looked at the ring by itself, so
    // that none of them needed the doorbell.
    uint32_t quiet = 0;
    // And how many were no jobs at all.
    uint32_t refused = 0;
    // Not OK: the client breaks the protocol and is to be disconnected.
    absl::Status violation;
  };
  // Takes what is in the ring, at most kRingEntries, and submits it.
  Drained Drain();

  // Whether Drain would find something. While the ring is not polled, a client
  // rings for every entry.
  [[nodiscard]] bool HasEntries() const;

  // Entries taken so far.
  [[nodiscard]] uint32_t taken() const {
    return head_.load(std::memory_order_relaxed);
  }

  // True: until it calls EndPolling the caller looks at HasEntries all the
  // time, and the client need not ring. False: another thread does so, or the
  // client does not know of it (kFeatureSpin) and rings for each entry anyway.
  [[nodiscard]] bool BeginPolling();
  // Whether there is an entry that nobody may have rung for.
  [[nodiscard]] bool EndPolling();

  // Who sleeps until then is woken by now, or soon by this thread (RingWakes).
  void Complete(const core::JobCompletion& completion) override;
  void Begin(uint32_t slot, uint32_t sequence) override;
  // Wakes who sleeps on this slot.
  void Wake(uint32_t slot);

  // RingTable's name for it. Set before it is drained.
  void set_number(uint64_t number) { number_ = number; }
  [[nodiscard]] uint64_t number() const { return number_; }
  [[nodiscard]] core::CopiedBytes ClientCopies(uint32_t context) const override;

 private:
  RingEndpoint(base::UniqueFd memory, base::UniqueFd doorbell,
               base::Mapping mapping);

  // Entries from `from` up to `to` were quiet ones (Drained).
  void MarkQuiet(uint32_t from, uint32_t to);
  [[nodiscard]] uint32_t CountQuiet(uint32_t head, uint32_t count) const;

  // Checks and submits one copied entry. `refused`: where it was no job.
  absl::Status Take(const wire::Submission& entry, core::JobGate& gate,
                    uint32_t* refused);
  void Refuse(const wire::Submission& entry, absl::Status why);

  const base::UniqueFd memory_;
  const base::UniqueFd doorbell_;
  const base::Mapping mapping_;
  wire::Ring* const ring_;

  std::shared_ptr<core::JobGate> gate_;
  bool marks_sleepers_ = false;
  uint64_t number_ = 0;
  // Ours, whatever the shared word says. Written by Drain; HasEntries reads it
  // at any time.
  std::atomic<uint32_t> head_{0};
  // Somebody polls. It alone sets which entries are quiet: the first one, and
  // below it the one after the last.
  std::atomic<bool> is_polled_{false};
  std::atomic<uint64_t> quiet_{0};
};

}  // namespace rknnd::transport

#endif  // DAEMON_TRANSPORT_SESSION_RING_RING_ENDPOINT_H_
