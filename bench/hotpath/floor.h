// What two wake-ups cost here, by the means that any design has which hands a
// frame to another process and sleeps. Each other side is a process of its own.

#ifndef BENCH_HOTPATH_FLOOR_H_
#define BENCH_HOTPATH_FLOOR_H_

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/posix/unique_fd.h"
#include "bench/hotpath/samples.h"

namespace rknnd::bench {

// What the other side goes over while it works, in bytes.
struct Footprint {
  size_t memory = 0;  // read and written
  size_t code = 0;    // executed, where this machine's is known
};

// An eventfd each way: the floor of latency.
class PingPong {
 public:
  // Forks the other side, pinned to `cpu`.
  explicit PingPong(int cpu, const Footprint& footprint = {});
  ~PingPong();
  PingPong(const PingPong&) = delete;
  PingPong& operator=(const PingPong&) = delete;

  void Round(int count, Samples* samples);
  // One, whose other side first goes over its footprint for so long. Its own
  // time is taken off, as that of a core is: what is left are two wake-ups, of
  // which the second one finds the caches cold. The first one does where nobody
  // has gone this way for as long.
  void RoundAfterWork(int64_t nanoseconds, Samples* samples);

 private:
  base::UniqueFd ping_, pong_;
  pid_t child_ = -1;
};

// The system calls of a frame and none of its code: there an eventfd that the
// other side meets in an epoll set, back a futex that has a time limit. What
// the kernel charges a frame, whoever wrote the two sides.
class SameCalls {
 public:
  SameCalls(int cpu, const Footprint& footprint);
  ~SameCalls();
  SameCalls(const SameCalls&) = delete;
  SameCalls& operator=(const SameCalls&) = delete;

  // As PingPong's.
  void RoundAfterWork(int64_t nanoseconds, Samples* samples);

 private:
  struct Shared {
    std::atomic<uint32_t> answers{0};
    int64_t work = 0, took = 0;
  };
  base::UniqueFd ping_;
  Shared* shared_ = nullptr;  // in a page both sides have
  pid_t child_ = -1;
};

// An eventfd there, a futex back: what a frame costs its client's CPU at least.
class FutexPeer {
 public:
  explicit FutexPeer(int cpu);
  ~FutexPeer();
  FutexPeer(const FutexPeer&) = delete;
  FutexPeer& operator=(const FutexPeer&) = delete;

  void Round(int count);

 private:
  base::UniqueFd ping_;
  std::atomic<uint32_t>* answers_ = nullptr;  // in a page both sides have
  pid_t child_ = -1;
};

}  // namespace rknnd::bench

#endif  // BENCH_HOTPATH_FLOOR_H_
