#include "base/posix/time_slice.h"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

namespace rknnd::base {
namespace {

// The first version of struct sched_attr of linux/sched/types.h, whose name
// newer C libraries have as well.
struct SchedAttributes {
  uint32_t size = sizeof(SchedAttributes);
  uint32_t policy = 0;
  uint64_t flags = 0;
  int32_t nice = 0;
  uint32_t priority = 0;
  uint64_t runtime = 0;
  uint64_t deadline = 0;
  uint64_t period = 0;
};
static_assert(sizeof(SchedAttributes) == 48);

bool Get(SchedAttributes* attributes) {
  return syscall(SYS_sched_getattr, 0, attributes, sizeof *attributes, 0) == 0;
}

}  // namespace

bool AskForSlice(Nanoseconds length) {
  SchedAttributes attributes;
  if (!Get(&attributes)) return false;
  if (attributes.policy != SCHED_OTHER && attributes.policy != SCHED_BATCH) {
    return false;
  }
  attributes.size = sizeof attributes;
  attributes.runtime = static_cast<uint64_t>(length);
  if (syscall(SYS_sched_setattr, 0, &attributes, 0) != 0) return false;
  // Older kernels take it and forget it.
  return Slice() == length;
}

Nanoseconds Slice() {
  SchedAttributes attributes;
  if (!Get(&attributes)) return 0;
  return static_cast<Nanoseconds>(attributes.runtime);
}

}  // namespace rknnd::base
