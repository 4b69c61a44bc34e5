// What the stand-in for the NPU's driver counts, and its faults on demand.

#ifndef TESTS_VM_NPU_STANDIN_COUNTS_H_
#define TESTS_VM_NPU_STANDIN_COUNTS_H_

#include <cstdint>
#include <map>
#include <string>

namespace rknnd::vm {

using StandinCounts = std::map<std::string, uint64_t>;

// By the names in rknpu_standin.c.
StandinCounts ReadStandin();
// A parameter of the module.
void SetStandin(const std::string& parameter, int value);
// Fails the test for each thing that no right user of a driver does, and for
// buffers that are left, since `before`.
void ExpectNoBreach(const StandinCounts& before);

}  // namespace rknnd::vm

#endif  // TESTS_VM_NPU_STANDIN_COUNTS_H_
