#include "tests/torture/networks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rknnd::torture {
namespace {

using ::testing::HasSubstr;

constexpr Network kNetwork = {3, 5, 2};

// As the NPU computes it, layer by layer.
std::vector<int32_t> Answer(const Network& network, uint64_t frame) {
  std::vector<int32_t> values(network.elements);
  Arithmetic(network).FillInput(frame, values.data());
  for (uint32_t layer = 0; layer < network.layers; ++layer) {
    for (uint32_t i = 0; i < network.elements; ++i) {
      values[i] += ConstantOf(network, layer, i);
    }
  }
  return values;
}

TEST(NetworksTest, KnowsTheRightAnswer) {
  EXPECT_EQ(Arithmetic(kNetwork).Differs(7, Answer(kNetwork, 7).data()), "");
}

TEST(NetworksTest, TellsWhoseAnswerItIs) {
  EXPECT_THAT(Arithmetic(kNetwork).Differs(7, Answer(kNetwork, 9).data()),
              HasSubstr("as frame 9 would"));
}

TEST(NetworksTest, SeesAnAnswerOfAnotherNetwork) {
  Network other = kNetwork;
  other.salt = 4;
  EXPECT_NE(Arithmetic(kNetwork).Differs(7, Answer(other, 7).data()), "");
}

TEST(NetworksTest, SeesWhatNobodyWrote) {
  std::vector<int32_t> answer = Answer(kNetwork, 7);
  const std::vector<int32_t> right = answer;
  Arithmetic(kNetwork).Poison(answer.data());
  std::copy_n(right.begin(), 4, answer.begin());
  EXPECT_THAT(Arithmetic(kNetwork).Differs(7, answer.data()),
              HasSubstr("element 4 is not written"));
}

TEST(NetworksTest, GoesThroughAnArgument) {
  const NetworkFile file =
      FromArgument(ToArgument({"/a folder/x.onnx", kNetwork}));
  EXPECT_EQ(file.path, "/a folder/x.onnx");
  EXPECT_EQ(file.network.salt, 3U);
  EXPECT_EQ(file.network.elements, 5U);
  EXPECT_EQ(file.network.layers, 2U);
  EXPECT_THROW(FromArgument("x.onnx"), std::runtime_error);
}

}  // namespace
}  // namespace rknnd::torture
