// How a call of the C API went: what its parts return to each other. An Error
// alone is not enough, because the C API's number also says what the call was
// about.

#ifndef CLIENT_RKNNRT_OUTCOME_H_
#define CLIENT_RKNNRT_OUTCOME_H_

#include <optional>
#include <string>
#include <utility>

#include "base/values/expected.h"
#include "client/rknnrt/status_map.h"

namespace rknnd::client {

// An error and what it was about: the C API's number follows from both.
struct Failure {
  base::Error error;
  Subject subject = Subject::kContext;
};

// It worked, or a Failure says why not. It has no conversion to bool, so that
// nobody has to remember which of the two would be true.
class [[nodiscard]] Outcome {
 public:
  Outcome() = default;
  Outcome(
      Failure failure)  // NOLINT(google-explicit-constructor): as Expected's
      : failure_(std::move(failure)) {}

  [[nodiscard]] bool ok() const { return !failure_.has_value(); }
  // Of one that is not ok().
  [[nodiscard]] const Failure& failure() const { return *failure_; }

 private:
  std::optional<Failure> failure_;
};

inline Outcome Fail(base::Code code, std::string message, Subject subject) {
  return Failure{{code, std::move(message)}, subject};
}

// What a target answered, to a call about `subject`.
inline Outcome ToOutcome(base::Expected<void> result, Subject subject) {
  if (result.ok()) return {};
  return Failure{std::move(result).error(), subject};
}

}  // namespace rknnd::client

#endif  // CLIENT_RKNNRT_OUTCOME_H_
