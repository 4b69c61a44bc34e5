#include "examples/detector/decode.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace rknnd::detector {
namespace {

constexpr size_t kFine = 18 * 32, kCoarse = 9 * 16;

class DecodeTest : public testing::Test {
 protected:
  // Says nothing anywhere.
  std::vector<std::vector<float>> outputs_ = {
      std::vector<float>(kFine * 2, -8), std::vector<float>(kFine * 4, 0),
      std::vector<float>(kCoarse * 2, -8), std::vector<float>(kCoarse * 4, 0)};

  void Claim(size_t grid, Kind kind, size_t row, size_t column, float logit) {
    const size_t columns = grid == 0 ? 32 : 16;
    const size_t cells = grid == 0 ? kFine : kCoarse;
    outputs_[2 * grid][static_cast<size_t>(kind) * cells + row * columns +
                       column] = logit;
  }
};

TEST_F(DecodeTest, NothingIsFoundWhereNothingIsClaimed) {
  EXPECT_TRUE(Decode(outputs_).empty());
}

TEST_F(DecodeTest, AClaimOfTheFineGridIsABoxAroundItsCell) {
  Claim(0, Kind::kVehicle, 9, 16, 3);
  outputs_[1][2 * kFine + 9 * 32 + 16] = std::log(4.0F);  // 32 pixels wide

  const std::vector<Detection> found = Decode(outputs_);

  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].kind, Kind::kVehicle);
  EXPECT_NEAR(found[0].score, 0.9526, 1e-3);
  EXPECT_NEAR(found[0].box.left, (132 - 16) / 256.0, 1e-5);
  EXPECT_NEAR(found[0].box.right, (132 + 16) / 256.0, 1e-5);
  EXPECT_NEAR(found[0].box.top, (76 - 4) / 144.0, 1e-5);
  EXPECT_NEAR(found[0].box.bottom, (76 + 4) / 144.0, 1e-5);
}

TEST_F(DecodeTest, AClaimOfTheCoarseGridIsTwiceAsLarge) {
  Claim(1, Kind::kPerson, 4, 8, 3);

  const std::vector<Detection> found = Decode(outputs_);

  ASSERT_EQ(found.size(), 1U);
  EXPECT_NEAR(found[0].box.right - found[0].box.left, 16 / 256.0, 1e-5);
  EXPECT_NEAR(found[0].box.bottom - found[0].box.top, 16 / 144.0, 1e-5);
}

TEST_F(DecodeTest, OfTwoClaimsForOneFigureTheSurerIsKept) {
  Claim(0, Kind::kPerson, 5, 5, 2);
  Claim(0, Kind::kPerson, 5, 6, 3);
  outputs_[1][5 * 32 + 5] = 1;  // both mean the same place

  const std::vector<Detection> found = Decode(outputs_);

  ASSERT_EQ(found.size(), 1U);
  EXPECT_NEAR(found[0].score, 0.9526, 1e-3);
}

TEST_F(DecodeTest, APersonBeforeAVehicleIsNotTakenForIt) {
  Claim(0, Kind::kPerson, 5, 5, 2);
  Claim(0, Kind::kVehicle, 5, 5, 3);

  const std::vector<Detection> found = Decode(outputs_);

  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].kind, Kind::kVehicle);
}

TEST_F(DecodeTest, ClaimsThatAreNotSureEnoughAreDropped) {
  Claim(0, Kind::kPerson, 5, 5, 0);  // one half

  EXPECT_EQ(Decode(outputs_, 0.49F).size(), 1U);
  EXPECT_TRUE(Decode(outputs_, 0.51F).empty());
}

TEST_F(DecodeTest, BoxesEndAtTheEdgeOfThePicture) {
  Claim(1, Kind::kVehicle, 0, 0, 3);
  outputs_[3][2 * kCoarse] = outputs_[3][3 * kCoarse] = 30;

  const std::vector<Detection> found = Decode(outputs_);

  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].box.left, 0);
  EXPECT_EQ(found[0].box.bottom, 1);
}

TEST_F(DecodeTest, AnAnswerThatIsNoNumberIsNoClaim) {
  Claim(0, Kind::kPerson, 5, 5, std::numeric_limits<float>::quiet_NaN());

  EXPECT_TRUE(Decode(outputs_).empty());
}

TEST_F(DecodeTest, OutputsOfAnotherModelGiveNothing) {
  Claim(0, Kind::kPerson, 5, 5, 3);
  outputs_[0].pop_back();
  EXPECT_TRUE(Decode(outputs_).empty());
  outputs_.pop_back();
  EXPECT_TRUE(Decode(outputs_).empty());
}

}  // namespace
}  // namespace rknnd::detector
