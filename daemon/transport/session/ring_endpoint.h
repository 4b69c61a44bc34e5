// The daemon's end of one session's submission ring (proto/wire/ring.h). All
// that the client can write there is hostile: entries are copied out before
// they are looked at, no index is trusted, completions are only ever stored.

#ifndef DAEMON_TRANSPORT_SESSION_RING_ENDPOINT_H_
#define DAEMON_TRANSPORT_SESSION_RING_ENDPOINT_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/posix/mapping.h"
#include "base/posix/mutex.h"
#include "base/posix/unique_fd.h"
#include "daemon/core/job_gate.h"
#include "daemon/core/types.h"
#include "proto/wire/ring.h"

namespace rknnd::transport {

// Outlives its session: a job that still runs completes into it.
// Thread: worker (Drain, Complete); any (HasEntries); loop (all else).
class RingEndpoint final : public core::CompletionSink {
 public:
  static absl::StatusOr<std::shared_ptr<RingEndpoint>> Create();

  // What the client is given. Borrowed.
  [[nodiscard]] int memory_fd() const { return memory_.get(); }
  // Never read, not even to clear it: its flags are shared with the client,
  // who can make a read block.
  [[nodiscard]] int doorbell_fd() const { return doorbell_.get(); }

  // From now on entries go to `gate`. Once, before the first Drain.
  void Open(std::shared_ptr<core::JobGate> gate);
  // No entry is taken any more; jobs in flight still complete.
  void Close();

  struct Drained {
    uint32_t entries = 0;
    // Not OK: the client breaks the protocol and is to be disconnected.
    absl::Status violation;
  };
  // Takes what is in the ring, at most kRingEntries, and submits it. One
  // caller at a time, the others wait for it: that is the session's order.
  Drained Drain();

  // Whether Drain would find something. Thread: any.
  [[nodiscard]] bool HasEntries() const;

  void Complete(const core::JobCompletion& completion) override;
  [[nodiscard]] core::CopiedBytes ClientCopies(uint32_t context) const override;

 private:
  RingEndpoint(base::UniqueFd memory, base::UniqueFd doorbell,
               base::Mapping mapping);

  // Checks and submits one copied entry.
  absl::Status Take(const wire::Submission& entry, core::JobGate& gate);

  const base::UniqueFd memory_;
  const base::UniqueFd doorbell_;
  const base::Mapping mapping_;
  wire::Ring* const ring_;

  base::Mutex mutex_;  // the per-session ring lock
  std::shared_ptr<core::JobGate> gate_ RKNND_GUARDED_BY(mutex_);
  // Ours, whatever the shared word says. Written under the lock; HasEntries
  // reads it without.
  std::atomic<uint32_t> head_{0};
};

}  // namespace rknnd::transport

#endif  // DAEMON_TRANSPORT_SESSION_RING_ENDPOINT_H_
