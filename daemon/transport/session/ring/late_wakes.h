// One worker's late wakes (daemon/core/running/late_wakes.h): the sleepers of a
// few slots, and the rings these are in.

#ifndef DAEMON_TRANSPORT_SESSION_RING_LATE_WAKES_H_
#define DAEMON_TRANSPORT_SESSION_RING_LATE_WAKES_H_

#include <sched.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "daemon/core/running/late_wakes.h"
#include "daemon/transport/session/ring/ring_endpoint.h"

namespace rknnd::transport {

// Thread: its worker.
class RingWakes final : public core::LateWakes {
 public:
  // More at once are those of cancelled jobs.
  static constexpr size_t kMost = 8;

  // On the calling thread, as long as it lives.
  explicit RingWakes(bool one_cpu) : one_cpu_(one_cpu) { SetOfThread(this); }
  ~RingWakes() override { SetOfThread(nullptr); }
  RingWakes(const RingWakes&) = delete;
  RingWakes& operator=(const RingWakes&) = delete;

  // Null on a thread that wakes at once.
  [[nodiscard]] static RingWakes* OfThread() {
    return static_cast<RingWakes*>(core::LateWakes::OfThread());
  }

  // False: there is no room, wake it at once.
  [[nodiscard]] bool Add(std::shared_ptr<RingEndpoint> ring, uint32_t slot) {
    if (count_ == wakes_.size()) return false;
    wakes_[count_++] = {std::move(ring), slot};
    return true;
  }

  void WakeAll() override {
    if (count_ == 0) return;
    while (count_ > 0) {
      const Wake wake = std::move(wakes_[--count_]);
      wake.ring->Wake(wake.slot);
    }
    // What comes now takes long, and there is no other CPU for who was woken.
    if (one_cpu_) sched_yield();
  }

  // The same, by a worker that has nothing else to do. Whoever is woken may
  // take its CPU and submit again at once; it need not ring, as this worker
  // looks once more: found(number of the ring, entries taken before) where
  // there is one.
  template <class Found>
  void WakeAllAndLook(Found found) {
    while (count_ > 0) {
      const Wake wake = std::move(wakes_[--count_]);
      const bool looks = wake.ring->BeginPolling();
      wake.ring->Wake(wake.slot);
      if (!looks) continue;
      const uint32_t seen = wake.ring->taken();
      if (wake.ring->EndPolling()) found(wake.ring->number(), seen);
    }
  }

 private:
  struct Wake {
    std::shared_ptr<RingEndpoint> ring;
    uint32_t slot = 0;
  };
  const bool one_cpu_;
  std::array<Wake, kMost> wakes_;
  size_t count_ = 0;
};

}  // namespace rknnd::transport

#endif  // DAEMON_TRANSPORT_SESSION_RING_LATE_WAKES_H_
