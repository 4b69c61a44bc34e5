// All that a client may ask of one of its contexts, as a table: for the test
// that asks each of every kind of context, and for the fuzzer that asks them in
// any order.

#ifndef DAEMON_CORE_TESTING_CONTEXT_VERBS_H_
#define DAEMON_CORE_TESTING_CONTEXT_VERBS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "daemon/core/sessions/session.h"

namespace rknnd::core::testing {

// The buffer of VerbBuffer's size that the session has when it asks.
inline constexpr uint32_t kVerbBuffer = 9000;
inline constexpr uint64_t kVerbBufferBytes = 4096;
// Numbers that verbs may make contexts of.
inline constexpr uint32_t kVerbContext = 9100;

struct ContextVerb {
  using Answer = std::function<void(absl::Status)>;
  std::string name;  // letters and digits
  // Answers once, at once or when the loops have run.
  std::function<void(Session&, uint32_t context, const Answer&)> ask;
};

const std::vector<ContextVerb>& ContextVerbs();

// Each flag of rknn_init alone, with its name; the first is none.
struct InitFlag {
  std::string name;
  uint32_t bits = 0;
};
const std::vector<InitFlag>& InitFlags();

}  // namespace rknnd::core::testing

#endif  // DAEMON_CORE_TESTING_CONTEXT_VERBS_H_
