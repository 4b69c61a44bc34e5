#include "driver/rknnrt/quarantine.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rknnd::rknnrt {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const std::string kHash(64, 'a');

TEST(QuarantineTest, SoManyDeathsInARowHoldAModel) {
  Quarantine quarantine;
  const auto conduct = quarantine.Of(kHash, "yolo.rknn");

  conduct->CountDeath(3, "signal 11");
  conduct->CountDeath(3, "signal 11");
  EXPECT_TRUE(conduct->Check(kHash).ok());
  EXPECT_THAT(quarantine.List(), IsEmpty());
  conduct->CountDeath(3, "signal 6");

  EXPECT_THAT(std::string(conduct->Check(kHash).message()),
              HasSubstr("model 'yolo.rknn' is in quarantine: it ended 3 "
                        "workers of the vendor's library one after the other, "
                        "the last one so: signal 6"));
  ASSERT_THAT(quarantine.List(), SizeIs(1));
  EXPECT_EQ(quarantine.List()[0].sha256, kHash);
}

TEST(QuarantineTest, AGoodJobBetweenThemForgives) {
  Quarantine quarantine;
  const auto conduct = quarantine.Of(kHash, "m");
  for (int i = 0; i < 10; ++i) {
    conduct->CountDeath(3, "");
    conduct->CountDeath(3, "");
    conduct->CountGood();
  }
  EXPECT_TRUE(conduct->Check(kHash).ok());
}

TEST(QuarantineTest, HoldsTheSameBytesWhoeverLoadsThem) {
  Quarantine quarantine;
  quarantine.Of(kHash, "one.rknn")->CountDeath(1, "signal 11");

  EXPECT_FALSE(quarantine.Of(kHash, "copy.rknn")->Check(kHash).ok());
}

TEST(QuarantineTest, IsReleasedByTheFirstDigits) {
  Quarantine quarantine;
  const auto conduct = quarantine.Of(kHash, "m");
  conduct->CountDeath(1, "signal 11");

  EXPECT_TRUE(absl::IsNotFound(quarantine.Release("aaaa")));
  EXPECT_TRUE(absl::IsNotFound(quarantine.Release("bbbbbbbb")));
  EXPECT_TRUE(quarantine.Release("aaaaaaaa").ok());

  EXPECT_TRUE(conduct->Check(kHash).ok());
  EXPECT_THAT(quarantine.List(), IsEmpty());
}

TEST(QuarantineTest, DigitsThatTwoHaveAreNotEnough) {
  Quarantine quarantine;
  quarantine.Of(kHash, "m")->CountDeath(1, "");
  quarantine.Of(std::string(63, 'a') + "b", "n")->CountDeath(1, "");

  EXPECT_TRUE(absl::IsInvalidArgument(quarantine.Release("aaaaaaaa")));
  EXPECT_TRUE(quarantine.Release(kHash).ok());
  EXPECT_THAT(quarantine.List(), SizeIs(1));
}

}  // namespace
}  // namespace rknnd::rknnrt
