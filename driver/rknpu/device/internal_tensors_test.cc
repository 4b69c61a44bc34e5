// What of a program's internal memory is in SRAM.

#include "driver/rknpu/device/internal_tensors.h"

#include <gtest/gtest.h>

namespace rknnd::rknpu {
namespace {

driver::TensorPlace At(uint64_t offset, uint64_t size, uint64_t traffic) {
  driver::TensorPlace place;
  place.offset = offset;
  place.size = size;
  place.written = traffic;
  return place;
}

class SramOfProgramTest : public ::testing::Test {
 protected:
  SramOfProgramTest() {
    program_.tensors = {At(0, 6000, 60000), At(6000, 4000, 8000),
                        At(20000, 4000, 4000)};
  }
  driver::ProgramInfo program_;
};

TEST_F(SramOfProgramTest, HoldsWhatLiesFirst) {
  const driver::SramPlan plan = PlanSramOf(program_, 8192 + 100);
  EXPECT_EQ(plan.size, 8192U) << "whole pages";
  EXPECT_EQ(plan.used, 8192U);
  ASSERT_EQ(plan.entries.size(), 2U);
  EXPECT_EQ(plan.entries[0].hit, 6000U);
  EXPECT_EQ(plan.entries[0].saved, 60000U);
  EXPECT_EQ(plan.entries[1].tensor, 1U);
  EXPECT_EQ(plan.entries[1].offset, 6000U);
  EXPECT_EQ(plan.entries[1].hit, 2192U);
  EXPECT_EQ(plan.entries[1].saved, 8000U * 2192 / 4000);
  EXPECT_EQ(plan.saved, 60000U + 8000 * 2192 / 4000);
}

TEST_F(SramOfProgramTest, UsesNoMoreThanThereIsToHold) {
  const driver::SramPlan plan = PlanSramOf(program_, 1 << 20);
  EXPECT_EQ(plan.entries.size(), 3U);
  EXPECT_EQ(plan.used, 24576U);
  EXPECT_EQ(plan.saved, 72000U);
}

TEST_F(SramOfProgramTest, LessThanAPageHoldsNothing) {
  const driver::SramPlan plan = PlanSramOf(program_, 4095);
  EXPECT_TRUE(plan.entries.empty());
  EXPECT_EQ(plan.used, 0U);
}

}  // namespace
}  // namespace rknnd::rknpu
