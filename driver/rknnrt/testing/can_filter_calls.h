// Whether this kernel has filters of system calls with a listener, and lets
// this process have one. Linked into tests only.

#ifndef DRIVER_RKNNRT_TESTING_CAN_FILTER_CALLS_H_
#define DRIVER_RKNNRT_TESTING_CAN_FILTER_CALLS_H_

#include <sys/wait.h>
#include <unistd.h>

#include "driver/rknnrt/worker/call_filter.h"

namespace rknnd::rknnrt::testing {

inline bool CanFilterCalls() {
  const pid_t child = fork();
  if (child == 0) _exit(InstallCallFilter("").ok() ? 0 : 1);
  int status = 1;
  waitpid(child, &status, 0);
  return status == 0;
}

}  // namespace rknnd::rknnrt::testing

#endif  // DRIVER_RKNNRT_TESTING_CAN_FILTER_CALLS_H_
