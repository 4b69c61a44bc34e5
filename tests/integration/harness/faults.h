// Faults on demand in a daemon under test: preset from its start, or set while
// it runs as an operator does. What they do is in driver/fault.h.

#ifndef TESTS_INTEGRATION_HARNESS_FAULTS_H_
#define TESTS_INTEGRATION_HARNESS_FAULTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "base/posix/clock.h"
#include "driver/fault.h"
#include "tests/integration/harness/daemon_process.h"
#include "tests/integration/harness/rknnctl.h"

namespace rknnd::integration {

struct FaultOptions {
  std::vector<driver::Fault> preset = {};
  // When the driver resets the NPU under a job that hangs; 0: never.
  base::Nanoseconds give_up = 6 * base::kSecond;
  // When the daemon gives up on a job; 0: as without this.
  base::Nanoseconds hang = 0;
};

// Those of a daemon that can be told to fail. Writes its configuration file
// into `folder`.
DaemonOptions WithFaults(const std::string& folder,
                         const FaultOptions& faults = {},
                         DaemonOptions options = {});

// `rknnctl fault` with the daemon at `target`.
RknnctlResult RunFault(const std::string& folder, const std::string& target,
                       std::vector<std::string> arguments);
// Sets one, and fails the test when that is refused; its number.
uint64_t SetFault(const std::string& folder, const std::string& target,
                  const driver::Fault& fault);
// 0: all.
void ClearFault(const std::string& folder, const std::string& target,
                uint64_t id = 0);

}  // namespace rknnd::integration

#endif  // TESTS_INTEGRATION_HARNESS_FAULTS_H_
