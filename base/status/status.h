// Bridges between base::Error and absl::Status, and the two macros that keep
// error paths short. Daemon side only.

#ifndef BASE_STATUS_STATUS_H_
#define BASE_STATUS_STATUS_H_

#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/values/expected.h"

namespace rknnd::base {

absl::Status ToStatus(const Error& error);
Error ToError(const absl::Status& status);

inline absl::Status ToStatus(const Expected<void>& result) {
  return result.ok() ? absl::OkStatus() : ToStatus(result.error());
}

template <class T>
absl::StatusOr<T> ToStatusOr(Expected<T> result) {
  if (!result.ok()) return ToStatus(result.error());
  return *std::move(result);
}

// `status` with `context` in front of its message: "context: message".
absl::Status Annotate(const absl::Status& status, std::string_view context);

}  // namespace rknnd::base

// Returns from the calling function when `expression` is not OK.
#define RKNND_RETURN_IF_ERROR(expression)                             \
  do {                                                                \
    if (absl::Status rknnd_status = (expression); !rknnd_status.ok()) \
      return rknnd_status;                                            \
  } while (false)

#define RKNND_STATUS_CONCAT_INNER(a, b) a##b
#define RKNND_STATUS_CONCAT(a, b) RKNND_STATUS_CONCAT_INNER(a, b)

// Assigns the value of a StatusOr, or returns its status.
// `target` may be a declaration: no parentheses.
// NOLINTBEGIN(bugprone-macro-parentheses)
#define RKNND_ASSIGN_OR_RETURN(target, expression)                             \
  RKNND_ASSIGN_OR_RETURN_INNER(RKNND_STATUS_CONCAT(rknnd_statusor_, __LINE__), \
                               target, expression)
#define RKNND_ASSIGN_OR_RETURN_INNER(statusor, target, expression) \
  auto statusor = (expression);                                    \
  if (!statusor.ok()) return std::move(statusor).status();         \
  target = *std::move(statusor)
// NOLINTEND(bugprone-macro-parentheses)

#endif  // BASE_STATUS_STATUS_H_
