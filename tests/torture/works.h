// What checking clients do, by name: for them, and for those who start them.

#ifndef TESTS_TORTURE_WORKS_H_
#define TESTS_TORTURE_WORKS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "tests/torture/networks.h"

namespace rknnd::torture {

enum class Work {
  kSync,      // rknn_run, a context and two of rknn_dup_context, a thread each
  kQueue,     // rknnd_submit over four sets, completions by a descriptor
  kVendor,    // rknn_inputs_set, rknn_run, rknn_outputs_get
  kImported,  // as kSync with one context, in memory of its own
  kChurn,     // contexts of all networks, made and destroyed without end
  kShared,    // frames that another client runs too, answered once for both
  kLazy,      // as kQueue, but it looks for completions now and then only
};
inline constexpr int kWorks = 7;
const char* NameOf(Work work);
std::optional<Work> WorkNamed(const std::string& name);

// Frames of kShared have one of so many inputs: that of frame number i modulo
// this, at i times this many bytes.
inline constexpr uint64_t kSharedInputs = 4;
uint64_t SharedStride(const Network& network);

}  // namespace rknnd::torture

#endif  // TESTS_TORTURE_WORKS_H_
