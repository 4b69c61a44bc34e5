// All sessions' rings, as workers find them: by a number that an epoll event
// carries, in constant time however many there are. And what a session's
// doorbell costs it.
//
// Each entry wakes a worker or keeps one awake, and the kernel lets that run
// before a program that was there first (base/posix/time_slice.h): good for a
// camera's frame, and bad for everybody else where a program submits without a
// pause. A session with which its user's submit more often than kSubmitInterval
// is served for a while by workers that come before nobody, where there is
// another session that it could disturb.
//
// A client may ring as often as it likes. Each entry that a wake-up finds pays
// for a later one that finds none (another worker was quicker: normal), but
// hardly does so where the client was told that it need not ring, and not at
// all where it is no job. A session that rings beyond that leaves the epoll set
// and its ring is looked at by a timer, until it has been away for a while.
//
//              --submits too often-->
//   kDoorbell                         kBusy
//       |      <--kBusyFor later-----   |
//       |                               |
//       +-------------------------------+--budget used up--> kTimer
//       ^                                                      |
//       +---------------------penalty over---------------------+
//
//   any of them --violation or Remove--> gone

#ifndef DAEMON_TRANSPORT_SESSION_RING_RING_TABLE_H_
#define DAEMON_TRANSPORT_SESSION_RING_RING_TABLE_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/posix/clock.h"
#include "base/posix/mutex.h"
#include "base/posix/rate_limit.h"
#include "daemon/core/terms/types.h"
#include "daemon/transport/session/ring/ring_endpoint.h"

namespace rknnd::transport {

// How often a ring of a flooding session is looked at. Each look takes a CPU
// from somebody's frame: as seldom as this, it is far below one in a hundred.
inline constexpr base::Nanoseconds kFloodPoll = 4 * base::kMillisecond;
// What the sessions of a user may submit together: ten thousand a second in the
// long run. Sixteen cameras with three models each need fifteen hundred.
inline constexpr uint32_t kSubmittedAtOnce = 500;
inline constexpr base::Nanoseconds kSubmitInterval = 100 * base::kMicrosecond;
// A session that submits too often for ever comes before others for its first
// kSubmittedAtOnce entries in so long a time: a hundredth of it, where each
// takes a worker as long as kSubmitInterval.
inline constexpr base::Nanoseconds kBusyFor = 5 * base::kSecond;

// Thread: loop, but where noted.
class RingTable {
 public:
  // Of one ring, for ever: a later session's is another. Never 0, and below
  // 2^56.
  using Number = uint64_t;

  // `epoll`: the set that doorbells are in; `busy_epoll`: those of busy
  // sessions. Borrowed.
  RingTable(int epoll, int busy_epoll, const base::Clock* clock)
      : epoll_(epoll), busy_epoll_(busy_epoll), clock_(clock) {}
  RingTable(const RingTable&) = delete;
  RingTable& operator=(const RingTable&) = delete;

  // `user`: whose limit its entries count for.
  absl::Status Add(core::SessionId session, std::shared_ptr<RingEndpoint> ring,
                   const std::string& user);
  // No entry is taken after the return but by a worker that was at it already.
  void Remove(core::SessionId session);

  struct Served {
    core::SessionId session = 0;  // 0: it is gone
    uint32_t entries = 0;
    bool floods = false;  // from now on: Punish is to be called on the loop
    absl::Status violation;
  };
  // Drains a ring. `seen`: a worker saw an entry by itself, after so many had
  // been taken: its client did not call it. Thread: worker.
  Served Serve(Number number, std::optional<uint32_t> seen = {});

  // A ring to be looked at, which lives as long as it is held. Null when its
  // session is gone, is busy or floods. Thread: worker.
  std::shared_ptr<RingEndpoint> Hold(Number number);

  // After Served::floods.
  void Punish(Number number);
  // One kFloodPoll later: adds to `found` which flooders' rings have entries,
  // once until TakeFound; sessions whose penalty is over have their doorbell
  // back. Whether there are flooders left.
  bool PollFlooders(bool* found);
  // Those that PollFlooders found. Thread: worker.
  std::vector<Number> TakeFound();

 private:
  enum class State { kDoorbell, kBusy, kTimer };

  // Its mutex is the order of the session's entries; held while they are
  // drained, and before the locks of its gate.
  struct Slot {
    base::Mutex mutex;
    Number number RKNND_GUARDED_BY(mutex) = 0;
    core::SessionId session RKNND_GUARDED_BY(mutex) = 0;
    std::shared_ptr<RingEndpoint> ring RKNND_GUARDED_BY(mutex);
    State state RKNND_GUARDED_BY(mutex) = State::kDoorbell;
    std::shared_ptr<base::RateLimit> submits RKNND_GUARDED_BY(mutex);
    base::Nanoseconds busy_until RKNND_GUARDED_BY(mutex) = 0;  // in kBusy
    // What wake-ups that find nothing may still cost.
    uint32_t budget RKNND_GUARDED_BY(mutex) = 0;
    // Of the last flood, 0: none yet.
    base::Nanoseconds penalty RKNND_GUARDED_BY(mutex) = 0;
    uint32_t ticks_left RKNND_GUARDED_BY(mutex) = 0;  // while in kTimer
    bool found RKNND_GUARDED_BY(mutex) = false;       // in found_
  };

  // A number is a slot's index below, and how often that was used above.
  static constexpr uint32_t kIndexBits = 16;
  static constexpr uint32_t kUseBits = 40;
  static constexpr size_t kChunkSlots = 64;
  static constexpr size_t kChunks = (size_t{1} << kIndexBits) / kChunkSlots;
  using Chunk = std::array<Slot, kChunkSlots>;

  [[nodiscard]] Slot* At(Number number) const;
  // The index of a slot that is nobody's.
  absl::StatusOr<uint32_t> TakeIndex();
  // For entries that were taken: those that may have been rung for, and quiet
  // ones (RingEndpoint::Drained).
  static void Earn(Slot& slot, uint32_t rung, uint32_t quiet)
      RKNND_REQUIRES(slot.mutex);
  // For a wake-up that found none of the former; whether it is a flood.
  bool Charge(Slot& slot) RKNND_REQUIRES(slot.mutex);
  // After a drain that took `entries`: who serves this session from now on.
  void ChooseWorkers(Slot& slot, uint32_t entries) RKNND_REQUIRES(slot.mutex);
  // Into the set of another state, and out of that of its own. False: it stays.
  bool MoveTo(State state, Slot& slot) const RKNND_REQUIRES(slot.mutex);

  // kDoorbell and kBusy have one.
  [[nodiscard]] int SetOf(State state) const {
    return state == State::kBusy ? busy_epoll_ : epoll_;
  }
  [[nodiscard]] bool Watch(const Slot& slot, State state) const
      RKNND_REQUIRES(slot.mutex);
  void Unwatch(const Slot& slot) const RKNND_REQUIRES(slot.mutex);

  const int epoll_, busy_epoll_;
  const base::Clock* const clock_;
  // Made when they are needed and never moved: workers look without a lock.
  std::array<std::atomic<Chunk*>, kChunks> chunks_{};
  std::vector<std::unique_ptr<Chunk>> owned_;
  std::vector<uint32_t> free_;  // indices, the last is the next
  uint64_t uses_ = 0;
  std::unordered_map<core::SessionId, Number> sessions_;
  std::atomic<size_t> session_count_{0};
  base::RateLimits limits_{kSubmittedAtOnce, kSubmitInterval};  // by user
  std::vector<Number> flooders_;

  base::Mutex found_mutex_;
  std::vector<Number> found_ RKNND_GUARDED_BY(found_mutex_);
};

}  // namespace rknnd::transport

#endif  // DAEMON_TRANSPORT_SESSION_RING_RING_TABLE_H_
