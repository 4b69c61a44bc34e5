#include "base/status/status.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "absl/strings/cord.h"
#include "base/status/matchers.h"

namespace rknnd::base {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(StatusTest, EveryCodeKeepsItsNumberBothWays) {
  for (int code = 1; code <= 16; ++code) {
    const absl::Status status = ToStatus({static_cast<Code>(code), "why"});
    EXPECT_EQ(static_cast<int>(status.code()), code);
    EXPECT_EQ(status.message(), "why");
    EXPECT_EQ(static_cast<int>(ToError(status).code), code);
    EXPECT_EQ(ToError(status).message, "why");
  }
}

TEST(StatusTest, AnExpectedValueBecomesAStatusOrValue) {
  const absl::StatusOr<std::unique_ptr<int>> result =
      ToStatusOr(Expected<std::unique_ptr<int>>(std::make_unique<int>(3)));
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(**result, 3);
}

TEST(StatusTest, AnExpectedErrorBecomesAStatusOrError) {
  EXPECT_THAT(ToStatusOr(Expected<int>(Error{Code::kNotFound, "gone"})),
              StatusIs(absl::StatusCode::kNotFound, "gone"));
}

TEST(StatusTest, AnExpectedVoidBecomesAStatus) {
  EXPECT_THAT(ToStatus(Expected<void>()), IsOk());
  EXPECT_THAT(ToStatus(Expected<void>(Error{Code::kAborted, "x"})),
              StatusIs(absl::StatusCode::kAborted));
}

TEST(StatusTest, AnnotatePutsTheContextInFront) {
  EXPECT_THAT(Annotate(absl::NotFoundError("no 'x'"), "load model 'm'"),
              StatusIs(absl::StatusCode::kNotFound, "load model 'm': no 'x'"));
}

TEST(StatusTest, AnnotateKeepsPayloads) {
  absl::Status status = absl::NotFoundError("x");
  status.SetPayload("url", absl::Cord("payload"));
  EXPECT_EQ(Annotate(status, "context").GetPayload("url"),
            absl::Cord("payload"));
}

TEST(StatusTest, AnnotateLeavesOkAlone) {
  EXPECT_THAT(Annotate(absl::OkStatus(), "context"), IsOk());
}

absl::Status ReturnIfError(const absl::Status& status, bool* reached) {
  RKNND_RETURN_IF_ERROR(status);
  *reached = true;
  return absl::OkStatus();
}

TEST(StatusTest, ReturnIfErrorReturnsErrorsOnly) {
  bool reached = false;
  EXPECT_THAT(ReturnIfError(absl::AbortedError("x"), &reached),
              StatusIs(absl::StatusCode::kAborted));
  EXPECT_FALSE(reached);
  EXPECT_THAT(ReturnIfError(absl::OkStatus(), &reached), IsOk());
  EXPECT_TRUE(reached);
}

absl::StatusOr<std::string> TwoAssignments(
    absl::StatusOr<std::unique_ptr<std::string>> first,
    absl::StatusOr<std::string> second) {
  RKNND_ASSIGN_OR_RETURN(const std::unique_ptr<std::string> a,
                         std::move(first));
  RKNND_ASSIGN_OR_RETURN(std::string b, std::move(second));
  return *a + b;
}

TEST(StatusTest, AssignOrReturnTakesValuesAlsoMoveOnlyOnes) {
  EXPECT_EQ(*TwoAssignments(std::make_unique<std::string>("a"), "b"), "ab");
}

TEST(StatusTest, AssignOrReturnReturnsTheFirstError) {
  EXPECT_THAT(TwoAssignments(absl::NotFoundError("1"), absl::AbortedError("2")),
              StatusIs(absl::StatusCode::kNotFound, "1"));
}

TEST(MatchersTest, StatusIsLooksAtCodeAndMessage) {
  const absl::Status status = absl::NotFoundError("no 'x' here");
  EXPECT_THAT(status, Not(IsOk()));
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kNotFound, HasSubstr("'x'")));
  EXPECT_THAT(status, StatusIs(Code::kNotFound));
  EXPECT_THAT(status, Not(StatusIs(absl::StatusCode::kAborted)));
  EXPECT_THAT(status,
              Not(StatusIs(absl::StatusCode::kNotFound, HasSubstr("'y'"))));
}

TEST(MatchersTest, AssertOkAndAssignUnwrapsBothKinds) {
  RKNND_ASSERT_OK_AND_ASSIGN(const int a, absl::StatusOr<int>(1));
  RKNND_ASSERT_OK_AND_ASSIGN(const int b, Expected<int>(2));
  EXPECT_EQ(a + b, 3);
}

}  // namespace
}  // namespace rknnd::base
