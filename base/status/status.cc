// Errors across the border between base/posix and abseil. Called on any
// thread. Numbers are the same on both sides, so that nothing is looked up.

#include "base/status/status.h"

#include <string>

namespace rknnd::base {

absl::Status ToStatus(const Error& error) {
  return {static_cast<absl::StatusCode>(error.code), error.message};
}

Error ToError(const absl::Status& status) {
  return {static_cast<Code>(status.raw_code()), std::string(status.message())};
}

absl::Status Annotate(const absl::Status& status, std::string_view context) {
  if (status.ok()) return status;
  std::string message(context);
  message += ": ";
  message += std::string(status.message());
  absl::Status annotated(status.code(), message);
  status.ForEachPayload([&](absl::string_view url, const absl::Cord& payload) {
    annotated.SetPayload(url, payload);
  });
  return annotated;
}

}  // namespace rknnd::base
