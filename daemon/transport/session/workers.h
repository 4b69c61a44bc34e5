// The threads that run jobs: one more than the device has cores, on one
// edge-triggered epoll set of all sessions' doorbells. The worker that a
// doorbell wakes drains that session's ring and, if a core is free, runs the
// job itself: no hand-over, no second wake-up. One worker always waits, so
// that rings are looked at while all cores are busy.
//
// A doorbell is never read. Its count only grows, and each ring of it is an
// edge of its own; what a worker has seen needs no clearing.
//
// A client may ring as often as it likes. Each entry that a wake-up finds pays
// for a later one that finds none (another worker was quicker: normal); a
// session that rings beyond that leaves the epoll set and its ring is looked
// at by a timer, until it has been away for a while.
//
//   kDoorbell --budget used up--> kTimer --penalty over--> kDoorbell
//       \______________violation or Remove__________/
//                           v
//                         gone

#ifndef DAEMON_TRANSPORT_SESSION_WORKERS_H_
#define DAEMON_TRANSPORT_SESSION_WORKERS_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/posix/clock.h"
#include "base/posix/event_loop.h"
#include "base/posix/mutex.h"
#include "base/posix/unique_fd.h"
#include "daemon/core/runner.h"
#include "daemon/core/types.h"
#include "daemon/transport/session/ring_endpoint.h"

namespace rknnd::transport {

// Told on the loop that a session broke the protocol in its ring.
using ViolationHandler =
    std::function<void(core::SessionId session, const absl::Status& reason)>;

struct WorkerCounters {
  std::atomic<uint64_t> wakes{0};      // doorbells and kicks taken
  std::atomic<uint64_t> empty{0};      // doorbells with nothing in the ring
  std::atomic<uint64_t> penalties{0};  // sessions moved to the timer
};

// Thread: loop, but where noted.
class Workers final : public core::WorkerWaker {
 public:
  // `loop` outlives the workers and runs no task after they are destroyed.
  static absl::StatusOr<std::unique_ptr<Workers>> Create(base::EventLoop* loop);
  ~Workers() override;

  // Starts `count` threads that run jobs of `runner`.
  void Start(uint32_t count, core::Runner* runner, ViolationHandler violation);
  // Ends and joins all threads; a job that runs ends first.
  void Stop();

  absl::Status Add(core::SessionId session, std::shared_ptr<RingEndpoint> ring);
  // No entry of this session is taken after the return but by a worker that
  // was at it already.
  void Remove(core::SessionId session);

  void WakeOne() override;  // Thread: any.

  [[nodiscard]] const WorkerCounters& counters() const { return counters_; }

 private:
  enum class State { kDoorbell, kTimer };

  struct Registration {
    std::shared_ptr<RingEndpoint> ring;
    State state = State::kDoorbell;
    // Wake-ups without an entry that are still free of charge.
    uint32_t budget = 0;
    base::Nanoseconds penalty = 0;  // of the last flood, 0: none yet
    uint32_t ticks_left = 0;        // while in kTimer
    bool pending = false;           // in pending_
  };

  Workers(base::EventLoop* loop, base::UniqueFd epoll, base::UniqueFd kick,
          base::UniqueFd stop);

  void RunWorker();
  // Drains one session's ring. Thread: worker.
  void Serve(core::SessionId session);
  // Drains what the timer found. Thread: worker.
  void ServePending();
  // Books what a wake-up found; true when the session floods.
  bool Charge(core::SessionId session, uint32_t entries);
  bool WatchDoorbell(core::SessionId session, int doorbell) const;
  void PollFlooders();

  base::EventLoop* const loop_;
  const base::UniqueFd epoll_;
  const base::UniqueFd kick_;
  const base::UniqueFd stop_;
  core::Runner* runner_ = nullptr;
  ViolationHandler violation_;
  std::vector<std::thread> threads_;
  base::EventLoop::TimerId timer_ = 0;  // 0: nobody floods
  // Posts that come after the end find nothing.
  std::shared_ptr<Workers*> self_;
  WorkerCounters counters_;

  base::Mutex mutex_;
  std::unordered_map<core::SessionId, Registration> sessions_
      RKNND_GUARDED_BY(mutex_);
  std::vector<core::SessionId> pending_ RKNND_GUARDED_BY(mutex_);
};

}  // namespace rknnd::transport

#endif  // DAEMON_TRANSPORT_SESSION_WORKERS_H_
