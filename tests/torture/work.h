// What a checking client does all its life, each in a way that programs use the
// API. Every frame is checked; what fails is noted and tried again with
// everything made anew, as a program that means to go on would.

#ifndef TESTS_TORTURE_WORK_H_
#define TESTS_TORTURE_WORK_H_

#include <cstdint>
#include <vector>

#include "tests/torture/networks.h"
#include "tests/torture/witness.h"
#include "tests/torture/works.h"

namespace rknnd::torture {

struct WorkPlan {
  Work work = Work::kSync;
  std::vector<NetworkFile> networks;  // the first, or all of them (kChurn)
  // What a frame takes at least, so that many clients share a small machine.
  base::Nanoseconds period = 0;
  uint64_t seed = 1;
  int inputs = -1;  // kShared: kSharedInputs inputs, a page or more each
};

// Until the ledger says stop and all frames have ended. Thread: one; makes
// others.
void DoWork(const WorkPlan& plan, const Witness& witness);

}  // namespace rknnd::torture

#endif  // TESTS_TORTURE_WORK_H_
