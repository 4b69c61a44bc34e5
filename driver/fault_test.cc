// Tests of what a fault may say, and of what is said about it.

#include "driver/fault.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace rknnd::driver {
namespace {

using ::testing::HasSubstr;

constexpr uint32_t kCores = 3;

Fault Of(FaultKind kind) {
  Fault fault;
  fault.kind = kind;
  return fault;
}

// What is wrong with it; "" if nothing is.
std::string Complaint(const Fault& fault) {
  return std::string(CheckFault(fault, kCores).message());
}

TEST(FaultTest, EveryKindHasANameThatFindsIt) {
  for (int i = 0; i <= static_cast<int>(FaultKind::kThrottle); ++i) {
    const auto kind = static_cast<FaultKind>(i);
    const auto found = FaultKindOf(NameOf(kind));
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_EQ(*found, kind);
  }
}

TEST(FaultTest, UnknownKindIsAnsweredWithTheNamesThereAre) {
  const auto found = FaultKindOf("hangs");
  ASSERT_FALSE(found.ok());
  EXPECT_THAT(std::string(found.status().message()),
              HasSubstr("'kind' is 'hangs', must be one of slow, hang,"));
}

TEST(FaultTest, CoreThatTheDeviceLacksIsNamed) {
  Fault fault = Of(FaultKind::kHang);
  fault.core = 3;
  EXPECT_EQ(Complaint(fault), "'core' is 3, the device has cores 0 to 2");
}

TEST(FaultTest, FieldOfAnotherKindIsNamed) {
  Fault fault = Of(FaultKind::kDeadCore);
  fault.ms = 5;
  EXPECT_EQ(Complaint(fault),
            "'ms' means nothing for 'dead-core': leave it out");
  fault = Of(FaultKind::kIncoherent);
  fault.core = 0;
  EXPECT_THAT(Complaint(fault), HasSubstr("'core' means nothing"));
  fault = Of(FaultKind::kHang);
  fault.status = 1;
  EXPECT_THAT(Complaint(fault), HasSubstr("'status' means nothing"));
}

TEST(FaultTest, SlowNeedsOneOfTimeAndFactor) {
  Fault fault = Of(FaultKind::kSlow);
  EXPECT_THAT(Complaint(fault), HasSubstr("'ms' or 'factor'"));
  fault.ms = 5;
  EXPECT_EQ(Complaint(fault), "");
  fault.factor = 2;
  EXPECT_THAT(Complaint(fault), HasSubstr("'ms' or 'factor'"));
  fault.ms = 0;
  EXPECT_EQ(Complaint(fault), "");
}

TEST(FaultTest, FactorIsAboveOneAndFinite) {
  Fault fault = Of(FaultKind::kThrottle);
  for (const double factor :
       {0.0, 0.5, 1.0, -3.0, 1e9, std::numeric_limits<double>::infinity(),
        std::numeric_limits<double>::quiet_NaN()}) {
    fault.factor = factor;
    EXPECT_THAT(Complaint(fault), HasSubstr("'factor' is")) << factor;
  }
  fault.factor = 1.5;
  EXPECT_EQ(Complaint(fault), "");
}

TEST(FaultTest, EveryZerothJobAndMoreThanADayAreRefused) {
  Fault fault = Of(FaultKind::kHang);
  fault.every = 0;
  EXPECT_THAT(Complaint(fault), HasSubstr("'every' is 0"));
  fault.every = 1;
  fault.ms = uint64_t{25} * 3600 * 1000;
  EXPECT_THAT(Complaint(fault), HasSubstr("'ms' is 90000000"));
}

TEST(FaultTest, DescriptionSaysWhichJobsAreHit) {
  Fault fault = Of(FaultKind::kHang);
  fault.core = 1;
  fault.model = "face";
  fault.after = 10;
  fault.every = 3;
  fault.times = 2;
  EXPECT_EQ(Describe(fault),
            "hang, core 1, model 'face', after 10, each 3rd, 2 times");
}

}  // namespace
}  // namespace rknnd::driver
