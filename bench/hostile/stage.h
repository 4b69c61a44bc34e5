// The daemon under attack: on the software NPU, with an open socket and its
// limits as they are without a configuration; and what it has at a moment.

#ifndef BENCH_HOSTILE_STAGE_H_
#define BENCH_HOSTILE_STAGE_H_

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "base/posix/child_process.h"
#include "bench/hostile/attack.h"
#include "tests/torture/observer.h"

namespace rknnd::bench {

struct Look {
  torture::ProcessUse use;
  uint64_t pool = 0;  // of its threads: gRPC's that do what others leave
  torture::Holdings held;
};

// How it was once an attacker was dead.
struct Recovery {
  double seconds = -1;  // until it was as before; -1: not in time
  std::string rest;     // what it had more then, or one second after the death
};

// Thread: one. Throws std::runtime_error.
class Stage {
 public:
  explicit Stage(bool with_grpc);

  [[nodiscard]] const Scene& scene() const { return scene_; }
  [[nodiscard]] pid_t pid() const { return daemon_.pid(); }
  // What a daemon of this configuration may take beside what it has at rest.
  [[nodiscard]] static uint64_t Allowed(Holds holds);

  // Once all that goes by itself has gone.
  Look Settled();
  // From now on, for `patience` seconds at most.
  Recovery AwaitAsBefore(const Look& before, double patience);

  [[nodiscard]] uint64_t resident() const;
  // The largest it was since then.
  void ForgetPeak();
  [[nodiscard]] uint64_t peak() const;

 private:
  Look LookNow();

  base::TemporaryFolder folder_;
  Scene scene_;
  base::ChildProcess daemon_;
};

}  // namespace rknnd::bench

#endif  // BENCH_HOSTILE_STAGE_H_
