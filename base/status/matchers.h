// GoogleMock matchers for absl::Status, absl::StatusOr and base::Expected, and
// the assertion that unwraps one. For tests only.
//
//   EXPECT_THAT(session.Bind(7), IsOk());
//   EXPECT_THAT(CheckImport(fd), StatusIs(absl::StatusCode::kInvalidArgument,
//                                         HasSubstr("pipe")));
//   RKNND_ASSERT_OK_AND_ASSIGN(UniqueFd fd, MakeEventFd());

#ifndef BASE_STATUS_MATCHERS_H_
#define BASE_STATUS_MATCHERS_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <utility>

#include "base/status/status.h"

namespace rknnd::base {

// What GoogleTest prints where an Expected is not as expected.
inline void PrintTo(const Error& error, std::ostream* out) {
  *out << ToStatus(error);
}
template <class T>
void PrintTo(const Expected<T>& result, std::ostream* out) {
  if (result.ok()) {
    *out << "a value";
  } else {
    PrintTo(result.error(), out);
  }
}

namespace testing_internal {

inline absl::Status StatusOf(const absl::Status& status) { return status; }
template <class T>
absl::Status StatusOf(const absl::StatusOr<T>& result) {
  return result.status();
}
template <class T>
absl::Status StatusOf(const Expected<T>& result) {
  return result.ok() ? absl::OkStatus() : ToStatus(result.error());
}
inline absl::Status StatusOf(const Error& error) { return ToStatus(error); }

inline absl::StatusCode AbslCode(absl::StatusCode code) { return code; }
inline absl::StatusCode AbslCode(Code code) {
  return static_cast<absl::StatusCode>(code);
}

}  // namespace testing_internal

MATCHER(IsOk, negation ? "isn't OK" : "is OK") {
  const absl::Status status = testing_internal::StatusOf(arg);
  *result_listener << status;
  return status.ok();
}

MATCHER_P2(StatusHas, code, message,
           std::string(negation ? "hasn't" : "has") + " status code " +
               absl::StatusCodeToString(code) + " and a message that " +
               ::testing::DescribeMatcher<std::string>(message)) {
  const absl::Status status = testing_internal::StatusOf(arg);
  *result_listener << status;
  return status.code() == code &&
         ::testing::Matches(message)(std::string(status.message()));
}

// `code` is an absl::StatusCode or a base::Code; `message` matches a string.
template <class AnyCode, class Message>
auto StatusIs(AnyCode code, Message message) {
  return StatusHas(testing_internal::AbslCode(code),
                   ::testing::Matcher<std::string>(std::move(message)));
}
template <class AnyCode>
auto StatusIs(AnyCode code) {
  return StatusIs(code, ::testing::Matcher<std::string>(::testing::_));
}

}  // namespace rknnd::base

// Assigns the value of a StatusOr or an Expected, or fails the test.
// `target` may be a declaration: no parentheses.
// NOLINTBEGIN(bugprone-macro-parentheses)
#define RKNND_ASSERT_OK_AND_ASSIGN(target, expression) \
  RKNND_ASSERT_OK_AND_ASSIGN_INNER(                    \
      RKNND_STATUS_CONCAT(rknnd_result_, __LINE__), target, expression)
#define RKNND_ASSERT_OK_AND_ASSIGN_INNER(result, target, expression) \
  auto result = (expression);                                        \
  ASSERT_THAT(result, ::rknnd::base::IsOk());                        \
  target = *std::move(result)
// NOLINTEND(bugprone-macro-parentheses)

#endif  // BASE_STATUS_MATCHERS_H_
