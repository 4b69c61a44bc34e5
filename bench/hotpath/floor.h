// What two wake-ups cost here: an eventfd ping-pong between two processes, the
// floor under any design that hands a frame to another process and sleeps.

#ifndef BENCH_HOTPATH_FLOOR_H_
#define BENCH_HOTPATH_FLOOR_H_

#include <sys/types.h>

#include "base/posix/unique_fd.h"
#include "bench/hotpath/samples.h"

namespace rknnd::bench {

class PingPong {
 public:
  // Forks the other side, pinned to `cpu`.
  explicit PingPong(int cpu);
  ~PingPong();
  PingPong(const PingPong&) = delete;
  PingPong& operator=(const PingPong&) = delete;

  void Round(int count, Samples* samples);

 private:
  base::UniqueFd ping_, pong_;
  pid_t child_ = -1;
};

}  // namespace rknnd::bench

#endif  // BENCH_HOTPATH_FLOOR_H_
