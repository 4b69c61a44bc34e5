// Programs of others that tests start, and when they listen.

#ifndef TESTS_INTEROP_PROGRAMS_H_
#define TESTS_INTEROP_PROGRAMS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "base/posix/child_process.h"
#include "tests/integration/harness/daemon_process.h"

namespace rknnd::integration {

// A TCP port of 127.0.0.1 that was free a moment ago: for programs that cannot
// be asked to choose one.
uint16_t FreePort();
// Whether somebody listens there within the test's patience.
bool Listens(uint16_t port);

// Runs it to its end; its exit code, and what it said in `log_file`.
int RunToEnd(const std::vector<std::string>& arguments,
             const std::string& log_file);

// A daemon's options for a gRPC port that the kernel chooses, and the port.
DaemonOptions WithGrpc(std::vector<std::string> more = {});
uint16_t GrpcPortOf(DaemonProcess& daemon);

}  // namespace rknnd::integration

#endif  // TESTS_INTEROP_PROGRAMS_H_
