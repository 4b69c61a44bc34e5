// See floor.h.

#include "bench/hotpath/floor.h"

#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>

#include "base/posix/clock.h"
#include "bench/common/placement.h"

namespace rknnd::bench {

PingPong::PingPong(int cpu)
    : ping_(eventfd(0, EFD_CLOEXEC)), pong_(eventfd(0, EFD_CLOEXEC)) {
  child_ = fork();
  if (child_ != 0) return;
  PinTo(cpu);
  uint64_t value = 0;
  const uint64_t one = 1;
  while (read(ping_.get(), &value, sizeof value) == sizeof value &&
         write(pong_.get(), &one, sizeof one) == sizeof one) {
  }
  _exit(0);
}

PingPong::~PingPong() {
  if (child_ <= 0) return;
  kill(child_, SIGKILL);
  waitpid(child_, nullptr, 0);
}

void PingPong::Round(int count, Samples* samples) {
  const base::MonotonicClock clock;
  const uint64_t one = 1;
  uint64_t value = 0;
  for (int i = 0; i < count; ++i) {
    const base::Nanoseconds start = clock.Now();
    if (write(ping_.get(), &one, sizeof one) != sizeof one ||
        read(pong_.get(), &value, sizeof value) != sizeof value) {
      return;
    }
    samples->Add(clock.Now() - start);
  }
}

}  // namespace rknnd::bench
