// Peers that do not take their answers. What is finished and not delivered
// holds memory and a place among the requests, and a peer that never reads
// would keep them for good: its call is cancelled after a while. Used by the
// endpoints around each message they send, and where one that has begun to send
// something large may stop in the middle.

#ifndef DAEMON_TRANSPORT_GRPC_DELIVERY_WATCH_H_
#define DAEMON_TRANSPORT_GRPC_DELIVERY_WATCH_H_

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>

#include "base/posix/clock.h"
#include "base/posix/event_loop.h"
#include "daemon/transport/session/event_log.h"

namespace rknnd::transport {

// Thread: any.
class DeliveryWatch {
 public:
  // From when an answer is given to gRPC until it has left, which is the
  // guard's end: for a unary call from Finish to OnDone, for a stream from
  // StartWrite to OnWriteDone.
  class Guard {
   public:
    Guard() = default;
    Guard(Guard&& other) noexcept;
    Guard& operator=(Guard&& other) noexcept;
    ~Guard() { Release(); }
    // `cancel` is not running after the return, nor will it run.
    void Release();

   private:
    friend class DeliveryWatch;
    DeliveryWatch* watch_ = nullptr;
    uint64_t number_ = 0;
  };

  // What expires is looked at on `loop`, which may be any thread's. All three
  // outlive it, and it outlives its guards; `loop` runs no task of it after.
  DeliveryWatch(base::Nanoseconds limit, base::EventLoop* loop,
                const base::Clock* clock, FailureLog* failures);

  static constexpr char kUntaken[] = "does not take its answers";

  // `cancel` (as a rule context->TryCancel()) is called once, with no lock of
  // the caller's held, when the guard is there for longer than the limit.
  // `peer`: GrpcPeer::Describe, for the log, as is `fault`, which is no copy.
  [[nodiscard]] Guard Begin(const std::string& peer,
                            std::function<void()> cancel,
                            const char* fault = kUntaken);

  // Those that wait now. For tests.
  [[nodiscard]] size_t waiting() const;

 private:
  struct Waiting {
    base::Nanoseconds due = 0;
    std::string peer;
    std::function<void()> cancel;
    const char* fault = kUntaken;
  };

  void CancelLate();
  void Forget(uint64_t number);

  const base::Nanoseconds limit_;
  base::EventLoop* const loop_;
  const base::Clock* const clock_;
  FailureLog* const failures_;

  // Held while `cancel` is called, so that no guard ends meanwhile; recursive,
  // as what is cancelled may end its guard at once.
  mutable std::recursive_mutex mutex_;
  // In the order they began, which is that of `due`.
  std::map<uint64_t, Waiting> waiting_;
  uint64_t next_ = 1;
  bool armed_ = false;  // the loop looks again
};

}  // namespace rknnd::transport

#endif  // DAEMON_TRANSPORT_GRPC_DELIVERY_WATCH_H_
