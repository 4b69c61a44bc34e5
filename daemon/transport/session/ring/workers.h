// The threads that run jobs: one more than the device has cores, on one
// edge-triggered epoll set of all sessions' doorbells. The worker that a
// doorbell wakes drains that session's ring and, if a core is free, runs the
// job itself: no hand-over, no second wake-up. One worker always waits, so
// that rings are looked at while all cores are busy. (What clears an idle
// core's internal memory stops when that core gets a job:
// core/running/isolation.h.)
//
// A doorbell is never read. Its count only grows, and each ring of it is an
// edge of its own; what a worker has seen needs no clearing.
//
// In the same set: kicks, the timer of what expires, fences (worker_events.h).
//
// Sessions that submit without a pause beside others (RingTable, kBusy) have a
// set and as many workers of their own. Those of the first have short turns:
// the kernel lets them run before whoever has a CPU. These have turns as any
// program has, and do not wait awake, so that a neighbour's program and its
// workers come before them.

#ifndef DAEMON_TRANSPORT_SESSION_RING_WORKERS_H_
#define DAEMON_TRANSPORT_SESSION_RING_WORKERS_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/posix/clock.h"
#include "base/posix/event_loop.h"
#include "base/posix/mutex.h"
#include "base/posix/unique_fd.h"
#include "daemon/core/running/runner.h"
#include "daemon/core/running/worker_pulse.h"
#include "daemon/core/terms/types.h"
#include "daemon/transport/session/ring/late_wakes.h"
#include "daemon/transport/session/ring/ring_endpoint.h"
#include "daemon/transport/session/ring/ring_table.h"
#include "daemon/transport/session/ring/spin.h"
#include "daemon/transport/session/ring/worker_events.h"

namespace rknnd::transport {

// Told on the loop that a session broke the protocol in its ring.
using ViolationHandler =
    std::function<void(core::SessionId session, const absl::Status& reason)>;

struct WorkersOptions {
  // By which times of ExpireBy are meant, and how often sessions submit. Null:
  // CLOCK_MONOTONIC.
  const base::Clock* clock = nullptr;
  // So long at most a worker waits awake after a job; 0: not at all. Nor is it
  // where this process may use one CPU only.
  base::Nanoseconds spin = 0;
};

struct WorkerCounts {
  uint64_t wakes = 0;       // events taken
  uint64_t busy_wakes = 0;  // of these, by busy sessions' workers
  uint64_t empty = 0;       // of doorbells with nothing in the ring
  uint64_t penalties = 0;   // sessions moved to the timer
  uint64_t spins = 0;       // waits awake
  uint64_t caught = 0;      // that an entry ended
};

// Thread: loop, but where noted.
class Workers final : public core::WorkerWaker {
 public:
  // `loop` outlives the workers and runs no task after they are destroyed.
  static absl::StatusOr<std::unique_ptr<Workers>> Create(
      base::EventLoop* loop, const WorkersOptions& options = {});
  ~Workers() override;

  // Who is told of fences' events; outlives the threads. Before Start.
  void set_fences(FenceEvents* fences) { fences_ = fences; }
  // Where fences are added. Borrowed. Thread: any.
  [[nodiscard]] int epoll_fd() const { return prompt_.epoll.get(); }

  // Starts `count` threads that run jobs of `runner`, and as many for busy
  // sessions.
  void Start(uint32_t count, core::Runner* runner, ViolationHandler violation);
  // Ends and joins all threads; a job that runs ends first.
  void Stop();

  // `user`: whose limit its entries count for (RingTable).
  absl::Status Add(core::SessionId session, std::shared_ptr<RingEndpoint> ring,
                   const std::string& user);
  // No entry of this session is taken after the return but by a worker that
  // was at it already.
  void Remove(core::SessionId session);

  void WakeOne() override;                         // Thread: any.
  void ExpireBy(base::Nanoseconds when) override;  // Thread: any.

  // What workers and clients may wait awake; 0: not at all.
  [[nodiscard]] base::Nanoseconds spin() const {
    return prompt_.spin.longest();
  }
  [[nodiscard]] WorkerCounts counts() const;  // Thread: any.
  // How many there are, and what one is at (WorkerPulse). Thread: any, but not
  // while they are started.
  [[nodiscard]] size_t count() const { return workers_.size(); }
  [[nodiscard]] uint64_t PulseOf(size_t worker) const {
    return workers_[worker]->pulse.word();
  }
  // There is an event that no worker has taken yet; of a busy session. Thread:
  // any.
  [[nodiscard]] bool HasEvent() const { return HasEvent(prompt_); }
  [[nodiscard]] bool HasBusyEvent() const { return HasEvent(busy_); }

 private:
  static constexpr base::Nanoseconds kNever =
      std::numeric_limits<base::Nanoseconds>::max();

  // An epoll set, and the workers that wait for its events.
  struct Crew {
    base::UniqueFd epoll;
    Spin spin;
    bool short_turns = false;
  };

  // Each worker counts by itself: no cache line is shared for it.
  struct alignas(64) Worker {
    explicit Worker(Crew* of) : crew(of) {}

    Crew* const crew;
    std::thread thread;
    RecentRings recent;
    core::WorkerPulse pulse;
    std::atomic<uint64_t> wakes{0}, empty{0}, penalties{0}, spins{0}, caught{0};
  };

  Workers(base::EventLoop* loop, const WorkersOptions& options,
          base::UniqueFd epoll, base::UniqueFd busy_epoll, base::UniqueFd kick,
          base::UniqueFd timer, base::UniqueFd stop);

  void StartWorker(Crew* crew);
  void RunWorker(Worker& self);
  // Sleeps until there is an event; 0: an interruption.
  static uint64_t Sleep(Worker& self);
  [[nodiscard]] static bool HasEvent(const Crew& crew);
  // Drains one session's ring, and runs what it can. Thread: worker.
  void Serve(Worker& self, RingTable::Number number,
             std::optional<uint32_t> seen = {});
  // Wakes whom this worker has answered, and serves those of them that have
  // submitted again by then; false when nobody has, or when no other worker
  // sleeps that would hear of the rest. Thread: worker.
  bool WakeAndServe(Worker& self, RingWakes& wakes);
  // Waits awake for an entry of the rings served lately, and serves it; false
  // when there was none, or it is no time to. Thread: worker.
  bool SpinAndServe(Worker& self);
  void PollFlooders();

  base::EventLoop* const loop_;
  const base::Clock* const clock_;
  Crew prompt_, busy_;
  const base::UniqueFd kick_;
  const base::UniqueFd timer_;
  const base::UniqueFd stop_;
  core::Runner* runner_ = nullptr;
  FenceEvents* fences_ = nullptr;
  ViolationHandler violation_;
  std::vector<std::unique_ptr<Worker>> workers_;  // of both crews
  base::EventLoop::TimerId flood_timer_ = 0;      // 0: nobody floods
  // Posts that come after the end find nothing.
  std::shared_ptr<Workers*> self_;
  RingTable rings_;

  base::Mutex timer_mutex_;  // held while timer_ is set
  std::atomic<base::Nanoseconds> expire_by_{kNever};
};

}  // namespace rknnd::transport

#endif  // DAEMON_TRANSPORT_SESSION_RING_WORKERS_H_
