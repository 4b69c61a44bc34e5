// Whether this kernel has filters of system calls with a listener, and lets
// this process have one. Linked into tests only.

#ifndef DRIVER_RKNNRT_TESTING_CAN_CAGE_H_
#define DRIVER_RKNNRT_TESTING_CAN_CAGE_H_

#include <sys/wait.h>
#include <unistd.h>

#include "driver/rknnrt/worker/cage.h"

namespace rknnd::rknnrt::testing {

inline bool CanCage() {
  const pid_t child = fork();
  if (child == 0) _exit(EnterCage("").ok() ? 0 : 1);
  int status = 1;
  waitpid(child, &status, 0);
  return status == 0;
}

}  // namespace rknnd::rknnrt::testing

#endif  // DRIVER_RKNNRT_TESTING_CAN_CAGE_H_
