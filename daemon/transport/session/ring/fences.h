// Fences of clients: what may be one, and the waiting for them in the workers'
// epoll set, so that no thread waits. The fds were opened by clients, who can
// do with their own copies what they like at any time.
//
// What a job may wait for (anything else is refused by name):
//
//   eventfd, sync_file, pipe, FIFO, timerfd, Unix socket
//
// Their poll looks at a counter or a queue of the kernel's and takes no lock
// that a client can keep. A file's poll may ask a file system in user space, a
// device's its driver, an epoll set's all that is in it, one of which may be
// the set that it is added to.
//
// What a job may tell of its end: a connected Unix socket without a name, as
// socketpair makes them. One byte is sent with MSG_DONTWAIT, which no flag of
// the client's changes; a full socket can be read already. The flags of an
// eventfd are shared with its owner, who can fill it and clear O_NONBLOCK
// between any look at them and the write. A socket with a name may lead to a
// service that takes the byte for one of the daemon's own.

#ifndef DAEMON_TRANSPORT_SESSION_RING_FENCES_H_
#define DAEMON_TRANSPORT_SESSION_RING_FENCES_H_

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "base/posix/mutex.h"
#include "daemon/core/running/runner.h"
#include "daemon/core/terms/types.h"
#include "daemon/transport/session/ring/worker_events.h"

namespace rknnd::transport {

// Whether the fd that came for fence `number` may be one; `out`: one that jobs
// signal. Neither reads it nor asks whoever is behind it. `doorbell`: of the
// client's session, which is no fence. Thread: any.
absl::Status CheckFence(uint32_t number, bool out, int fd, int doorbell);

// What is watched, from the first job that waits for a fence to its event, or
// to the end of the last of them. Each event says so once and takes the fd out
// of the set.
//
// Thread: any, but where noted.
class Fences final : public core::FenceWatcher, public FenceEvents {
 public:
  // `epoll`: the workers', for jobs that no worker takes.
  explicit Fences(int epoll) : epoll_(epoll) {}
  // Before the workers start.
  void set_runner(core::Runner* runner) { runner_ = runner; }

  [[nodiscard]] core::FenceState Look(const core::Fence& fence) override;
  absl::Status Watch(uint64_t token,
                     const std::shared_ptr<core::Fence>& fence) override;
  void Unwatch(uint64_t token) override;
  void Signal(const std::shared_ptr<core::Fence>& fence) override;

  void EnterWorker(int epoll) override;         // Thread: worker.
  void OnFenceEvent(uint64_t number) override;  // Thread: worker.

  // Fds in the set.
  [[nodiscard]] size_t watched() const;

 private:
  struct Watched {
    std::shared_ptr<core::Fence> fence;
    int epoll = -1;                // the set it is in
    std::vector<uint64_t> tokens;  // of the jobs, in the order they came
  };

  // Takes a fence out of the set, and all it has here.
  void Forget(uint64_t number) RKNND_REQUIRES(mutex_);

  const int epoll_;
  core::Runner* runner_ = nullptr;

  mutable base::Mutex mutex_;
  // Never used again: a late event of one that was taken out finds nothing.
  uint64_t next_number_ RKNND_GUARDED_BY(mutex_) = 1;
  std::unordered_map<uint64_t, Watched> watched_ RKNND_GUARDED_BY(mutex_);
  std::unordered_map<const core::Fence*, uint64_t> by_fence_
      RKNND_GUARDED_BY(mutex_);
  std::unordered_map<uint64_t, uint64_t> by_token_ RKNND_GUARDED_BY(mutex_);
};

}  // namespace rknnd::transport

#endif  // DAEMON_TRANSPORT_SESSION_RING_FENCES_H_
