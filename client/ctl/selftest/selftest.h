// rknnctl selftest: the steps of docs/hardware.md that bring up a board, one
// after the other, as a report that its owner can attach to an issue. Networks
// run on the target, and the emulated NPU in a process of ours says what they
// have to answer, to the byte.
//
//   doctor      what the board's checks say of driver, node and IOMMU
//   device      what serves compiled models, and its versions
//   network     each network on each set of cores
//   runs        all networks at once, from as many threads as there are cores
//   reset       the same, while the NPU is reset (only where it is asked for)
//   sram        a context with RKNN_FLAG_ENABLE_SRAM
//   dma-buf     a frame in another exporter's memory, as a camera's
//
// A step fails, or is skipped with the reason; later ones run all the same.

#ifndef CLIENT_CTL_SELFTEST_SELFTEST_H_
#define CLIENT_CTL_SELFTEST_SELFTEST_H_

#include <cstdint>
#include <string>
#include <vector>

#include "base/values/expected.h"
#include "client/ctl/reports/report.h"

namespace rknnd::client {

// A compiled network; of noise where it has no files for its inputs.
struct SelfTestCase {
  std::string file;
  std::vector<std::string> inputs;
};

struct SelfTestOptions {
  std::string target;               // as in RKNND_TARGET
  std::vector<SelfTestCase> cases;  // beside the one that is built in
  uint64_t runs = 1000;
  bool reset = false;
  std::string report;  // a file for the JSON; empty: none
};

struct SelfTestAnswer {
  Output output;
  bool passed = false;
};
base::Expected<SelfTestAnswer> SelfTest(const SelfTestOptions& options);

}  // namespace rknnd::client

#endif  // CLIENT_CTL_SELFTEST_SELFTEST_H_
