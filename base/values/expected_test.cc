#include "base/values/expected.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <memory>

namespace rknnd::base {
namespace {

TEST(ExpectedTest, HoldsAMoveOnlyValue) {
  Expected<std::unique_ptr<int>> result(std::make_unique<int>(5));
  ASSERT_TRUE(result.ok());
  const std::unique_ptr<int> value = *std::move(result);
  EXPECT_EQ(*value, 5);
}

TEST(ExpectedTest, HoldsAnError) {
  const Expected<int> result(Error{Code::kNotFound, "gone"});
  EXPECT_FALSE(result);
  EXPECT_EQ(result.error().code, Code::kNotFound);
  EXPECT_EQ(result.error().message, "gone");
}

TEST(ExpectedTest, VoidIsOkUntilGivenAnError) {
  EXPECT_TRUE(Expected<void>().ok());
  EXPECT_FALSE(Expected<void>(Error{Code::kAborted, ""}).ok());
}

TEST(ErrnoErrorTest, SaysActionAndReason) {
  const Error error = ErrnoError(ENOENT, "open '/dev/udmabuf'");
  EXPECT_EQ(error.code, Code::kNotFound);
  EXPECT_EQ(error.message, "open '/dev/udmabuf': No such file or directory");
}

TEST(ErrnoErrorTest, MapsErrnosByMeaning) {
  EXPECT_EQ(ErrnoError(EACCES, "").code, Code::kPermissionDenied);
  EXPECT_EQ(ErrnoError(EMFILE, "").code, Code::kResourceExhausted);
  EXPECT_EQ(ErrnoError(ECONNREFUSED, "").code, Code::kUnavailable);
  EXPECT_EQ(ErrnoError(ENOSYS, "").code, Code::kUnimplemented);
}

TEST(ErrnoErrorTest, UnknownNumbersAreNamedByNumber) {
  const Error error = ErrnoError(99999, "do");
  EXPECT_EQ(error.code, Code::kUnknown);
  EXPECT_EQ(error.message, "do: error 99999");
}

}  // namespace
}  // namespace rknnd::base
