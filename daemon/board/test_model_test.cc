// Tests of the self-test's model: what it takes for a wrong answer. That the
// software NPU answers it rightly is shown end to end
// (tests/integration/operating/doctor_test.cc).

#include "daemon/board/test_model.h"

#include <cstring>
#include <vector>

#include "gtest/gtest.h"

namespace rknnd::board {
namespace {

constexpr size_t kNumbers = 8 * 8 * 8;

driver::TensorAttr Attribute(driver::TensorLayout layout) {
  driver::TensorAttr attribute;
  attribute.layout = layout;
  return attribute;
}

TEST(TestModelTest, IsAFewHundredBytes) {
  EXPECT_LT(TestModel().size(), 1024U);
  EXPECT_EQ(TestModel(), TestModel());
}

TEST(TestModelTest, InputDependsOnTheRoundAndTheLayout) {
  std::vector<std::byte> first(kNumbers * 4), second(first), nhwc(first);
  FillTestInput(Attribute(driver::TensorLayout::kNchw), 0, first);
  FillTestInput(Attribute(driver::TensorLayout::kNchw), 1, second);
  FillTestInput(Attribute(driver::TensorLayout::kNhwc), 0, nhwc);
  EXPECT_NE(first, second);
  EXPECT_NE(first, nhwc);
}

TEST(TestModelTest, AnswersThatWereNeverWrittenAreWrong) {
  const std::vector<std::byte> zeros(kNumbers * 4);
  EXPECT_GT(CountWrong(Attribute(driver::TensorLayout::kNchw), 0, zeros),
            kNumbers / 4);
  std::vector<std::byte> nans(kNumbers * 4, std::byte{0xFF});
  EXPECT_EQ(CountWrong(Attribute(driver::TensorLayout::kNchw), 0, nans),
            kNumbers);
  EXPECT_EQ(CountWrong(Attribute(driver::TensorLayout::kNchw), 0, {}),
            kNumbers);
}

}  // namespace
}  // namespace rknnd::board
