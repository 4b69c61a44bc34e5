#include "client/rknnrt/status_map.h"

#include <gtest/gtest.h>

#include "client/include/rknn_api.h"

namespace rknnd::client {
namespace {

using base::Code;

constexpr Subject kSubjects[] = {Subject::kNone, Subject::kModel,
                                 Subject::kContext, Subject::kInput,
                                 Subject::kOutput};

struct Row {
  Code code;
  int none, model, context, input, output;
};

class StatusMapTest : public testing::TestWithParam<Row> {};

TEST_P(StatusMapTest, CodeHasItsNumberForEachSubject) {
  const Row& row = GetParam();
  const int expected[] = {row.none, row.model, row.context, row.input,
                          row.output};
  for (size_t i = 0; i < std::size(kSubjects); ++i) {
    EXPECT_EQ(ToRknnError(row.code, kSubjects[i]), expected[i])
        << "subject " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(
    AllCodes, StatusMapTest,
    testing::Values(Row{Code::kOk, 0, 0, 0, 0, 0},
                    Row{Code::kCancelled, -1, -1, -102, -1, -1},
                    Row{Code::kUnknown, -1, -1, -1, -1, -1},
                    Row{Code::kInvalidArgument, -5, -6, -5, -8, -9},
                    Row{Code::kDeadlineExceeded, -2, -2, -2, -2, -2},
                    Row{Code::kNotFound, -5, -6, -7, -8, -9},
                    Row{Code::kAlreadyExists, -1, -1, -1, -1, -1},
                    Row{Code::kPermissionDenied, -3, -6, -3, -3, -3},
                    Row{Code::kResourceExhausted, -4, -4, -4, -4, -4},
                    Row{Code::kFailedPrecondition, -1, -13, -1, -8, -9},
                    Row{Code::kAborted, -1, -1, -101, -1, -1},
                    Row{Code::kOutOfRange, -5, -6, -5, -8, -9},
                    Row{Code::kUnimplemented, -1, -6, -1, -1, -1},
                    Row{Code::kInternal, -1, -1, -1, -1, -1},
                    Row{Code::kUnavailable, -3, -3, -3, -3, -3},
                    Row{Code::kDataLoss, -1, -6, -1, -1, -1},
                    Row{Code::kUnauthenticated, -3, -3, -3, -3, -3}));

TEST(StatusMapOfUnknownTest, CodeOfANewerDaemonIsAGeneralFailure) {
  EXPECT_EQ(ToRknnError(static_cast<Code>(99), Subject::kModel), RKNN_ERR_FAIL);
}

}  // namespace
}  // namespace rknnd::client
