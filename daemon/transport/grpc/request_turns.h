// When a call may send its message: at once where there is room for it in the
// request budget, else when its turn has come (turn_queue.h), unread until
// then, so that HTTP/2 holds its sender back. What cannot be in time any more
// is not waited for, and what has no place in the queue is told when to come
// again, each a little later than the one before, so that not all of them come
// at once.
//
//   Ask --room--------------------------------------------> granted
//    |                                                        ^
//    +--none--> waits --its turn, and there is room-----------+
//                 |
//                 +--deadline, displaced by others--> refused
//                 +--Withdraw--> nothing more is heard

#ifndef DAEMON_TRANSPORT_GRPC_REQUEST_TURNS_H_
#define DAEMON_TRANSPORT_GRPC_REQUEST_TURNS_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/posix/clock.h"
#include "base/posix/event_loop.h"
#include "base/posix/mutex.h"
#include "daemon/transport/grpc/request_budget.h"
#include "daemon/transport/grpc/turn_queue.h"

namespace rknnd::transport {

// Thread: any.
class RequestTurns {
 public:
  // Turns are given on `loop`, which may be any thread's; `waiting`: calls that
  // wait at one time. All outlive it; `loop` runs no task of it after.
  RequestTurns(RequestBudget* budget, uint32_t waiting, base::EventLoop* loop,
               const base::Clock* clock);
  ~RequestTurns();

  struct Asker {
    std::string account;     // GrpcPeer::account
    std::string connection;  // GrpcPeer::address
    base::Nanoseconds deadline = TurnQueue::kNoDeadline;
  };
  // Called once, without a lock of ours, within Ask or on the loop.
  using Told = std::function<void(absl::StatusOr<RequestBudget::Hold>)>;
  // Where a call that asks keeps what it needs to withdraw.
  class Place {
    friend class RequestTurns;
    TurnQueue::Ticket ticket_ = 0;
  };

  // `message`: its bytes where they are known, else 0. RESOURCE_EXHAUSTED: it
  // needs more than it can ever have, or had to leave. `place` outlives what it
  // is told.
  void Ask(const Asker& asker, uint64_t message, Place* place, Told told);
  // False: it is told, or was.
  bool Withdraw(const Place& place);

  // A request was answered, so long after it was granted.
  void NoteAnswer(base::Nanoseconds took);
  // When somebody who is refused now shall come again: at a time of his own.
  base::Nanoseconds ComeAgain();

  [[nodiscard]] size_t waiting() const;

 private:
  struct Waiting {
    std::string account;
    uint64_t message = 0;
    Told told;
  };
  using News = std::pair<Told, absl::StatusOr<RequestBudget::Hold>>;

  void OnRoom();
  // Thread: loop.
  void GiveTurns();
  // Room also comes with time (RequestPace).
  void LookAgain();
  News TellLater(TurnQueue::Ticket ticket,
                 absl::StatusOr<RequestBudget::Hold> what)
      RKNND_REQUIRES(mutex_);
  RequestBudget::Room Try(const std::string& account, uint64_t message,
                          RequestBudget::Hold* hold) RKNND_REQUIRES(mutex_);
  // Whether one that waits can go now; `hold` is its room then. With the lock,
  // from within the queue, through which the analysis does not see.
  TurnQueue::Answer HasRoom(TurnQueue::Ticket next, RequestBudget::Hold* hold)
      RKNND_NO_THREAD_SAFETY_ANALYSIS;
  // The least that a request needs from its turn to its answer.
  base::Nanoseconds LeastNeeded() const RKNND_REQUIRES(mutex_);

  RequestBudget* const budget_;
  base::EventLoop* const loop_;
  const base::Clock* const clock_;

  mutable base::Mutex mutex_;
  TurnQueue queue_ RKNND_GUARDED_BY(mutex_);
  std::map<TurnQueue::Ticket, Waiting> waiting_ RKNND_GUARDED_BY(mutex_);
  bool posted_ RKNND_GUARDED_BY(mutex_) = false;
  std::atomic<bool> somebody_waits_{false};
  base::EventLoop::TimerId look_again_ = 0;  // thread: loop

  // What the last answers took, and how many there were in a second.
  std::array<base::Nanoseconds, 16> took_ RKNND_GUARDED_BY(mutex_){};
  uint64_t answers_ RKNND_GUARDED_BY(mutex_) = 0;
  base::Nanoseconds rate_since_ RKNND_GUARDED_BY(mutex_) = 0;
  uint64_t rate_answers_ RKNND_GUARDED_BY(mutex_) = 0;
  base::Nanoseconds per_answer_ RKNND_GUARDED_BY(mutex_);
  base::Nanoseconds next_return_ RKNND_GUARDED_BY(mutex_) = 0;
};

}  // namespace rknnd::transport

#endif  // DAEMON_TRANSPORT_GRPC_REQUEST_TURNS_H_
