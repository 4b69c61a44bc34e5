// What the events of the workers' epoll sets are about: a kind in the high byte
// of their data, and that kind's number below it. All that a worker waits for
// is in one set, so that its sleep is enough for doorbells, kicks, the timer
// and fences.

#ifndef DAEMON_TRANSPORT_SESSION_RING_WORKER_EVENTS_H_
#define DAEMON_TRANSPORT_SESSION_RING_WORKER_EVENTS_H_

#include <cstdint>

namespace rknnd::transport {

enum class WorkerEvent : uint8_t {
  kDoorbell = 1,  // a session's; number: RingTable's
  kKick = 2,      // jobs became runnable otherwise
  kTimer = 3,     // the time of WorkerWaker::ExpireBy has come
  kFence = 4,     // number: of whoever watches fences (FenceEvents)
  kStop = 5,
};

inline constexpr uint32_t kEventNumberBits = 56;

// `number` must fit kEventNumberBits.
constexpr uint64_t EventTag(WorkerEvent kind, uint64_t number = 0) {
  return static_cast<uint64_t>(kind) << kEventNumberBits | number;
}
constexpr WorkerEvent EventKind(uint64_t tag) {
  return static_cast<WorkerEvent>(tag >> kEventNumberBits);
}
constexpr uint64_t EventNumber(uint64_t tag) {
  return tag & ((uint64_t{1} << kEventNumberBits) - 1);
}

// Adds fds to a set of the workers with EventTag(kFence, number), and is told
// of their events. May be told of a number that it has taken out meanwhile.
class FenceEvents {
 public:
  virtual ~FenceEvents() = default;
  // The calling worker waits in the set `epoll`, and so do the fences of jobs
  // that it takes. Once, before its first event. Thread: worker.
  virtual void EnterWorker(int epoll) = 0;
  // Jobs that may run now are taken up by the caller. Thread: worker.
  virtual void OnFenceEvent(uint64_t number) = 0;
};

}  // namespace rknnd::transport

#endif  // DAEMON_TRANSPORT_SESSION_RING_WORKER_EVENTS_H_
