// Tests of flags, core masks and the layer table.

#include "daemon/core/context.h"

#include <string>

#include "daemon/core/testing/core_fixture.h"
#include "gtest/gtest.h"

namespace rknnd::core {
namespace {

using testing::TestSession;

driver::DeviceInfo Device(uint32_t cores) {
  driver::DeviceInfo info;
  info.soc = "rk3576";
  info.cores = cores;
  return info;
}

TEST(ParseFlagsTest, PriorityComesFromTheLowestBits) {
  EXPECT_EQ(ParseFlags(0)->priority, Priority::kHigh);
  EXPECT_EQ(ParseFlags(1)->priority, Priority::kMedium);
  EXPECT_EQ(ParseFlags(2)->priority, Priority::kLow);
  EXPECT_EQ(ParseFlags(3).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(ParseFlagsTest, HintsAreAccepted) {
  for (const uint32_t flag :
       {0x4U, 0x400U, 0x800U, 0x1000U, 0x2000U, 0x4000U, 0x8000U}) {
    EXPECT_TRUE(ParseFlags(flag).ok()) << flag;
  }
}

TEST(ParseFlagsTest, FlagsOfLaterVersionsAreUnimplementedByName) {
  for (const uint32_t flag : {0x10U, 0x20U, 0x40U, 0x80U, 0x200U, 0x10000U}) {
    const absl::Status status = ParseFlags(flag).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented) << flag;
    EXPECT_EQ(status.message().find("RKNN_FLAG_"), 0U) << status;
  }
}

TEST(ParseFlagsTest, UnknownFlagsAreRefused) {
  EXPECT_EQ(ParseFlags(0x80000000).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(ResolveCoreMaskTest, AutoMeansAnyCore) {
  EXPECT_EQ(*ResolveCoreMask(0, Device(3)), 0b111U);
  EXPECT_EQ(*ResolveCoreMask(0, Device(2)), 0b11U);
}

TEST(ResolveCoreMaskTest, SingleCoresAreKept) {
  EXPECT_EQ(*ResolveCoreMask(1, Device(3)), 1U);
  EXPECT_EQ(*ResolveCoreMask(2, Device(3)), 2U);
  EXPECT_EQ(*ResolveCoreMask(4, Device(3)), 4U);
}

TEST(ResolveCoreMaskTest, MissingCoreIsNamed) {
  for (const uint32_t mask : {4U, 7U}) {
    const absl::Status status = ResolveCoreMask(mask, Device(2)).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_NE(status.message().find("core 2"), std::string::npos);
    EXPECT_NE(status.message().find("rk3576 has cores 0 to 1"),
              std::string::npos);
  }
}

TEST(ResolveCoreMaskTest, SeveralCoresAtOnceAreUnimplemented) {
  for (const uint32_t mask : {3U, 7U, 0xffffU}) {
    EXPECT_EQ(ResolveCoreMask(mask, Device(3)).status().code(),
              absl::StatusCode::kUnimplemented);
  }
}

TEST(ResolveCoreMaskTest, OtherMasksAreRefused) {
  for (const uint32_t mask : {5U, 6U, 8U, 0x10000U, UINT32_MAX}) {
    EXPECT_EQ(ResolveCoreMask(mask, Device(3)).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
}

TEST(ResolveCoreMaskTest, OneCoreAcceptsEveryMask) {
  for (const uint32_t mask : {0U, 1U, 4U, 7U, 0xffffU}) {
    EXPECT_EQ(*ResolveCoreMask(mask, Device(1)), 1U);
  }
}

class PerfTest : public testing::CoreTest {};

TEST_F(PerfTest, TableHasALinePerLayerAndTheirSum) {
  const TestSession session = Open();
  MakeReady(session, 1, "layers=3", 0x8);
  EXPECT_NE(session->PerfDetail(1)->find("no run yet"), std::string::npos);
  ASSERT_TRUE(Submit(session, 1, 0).ok());
  RunReady();

  const auto text = session->PerfDetail(1);

  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_NE(text->find("Conv"), std::string::npos);
  EXPECT_NE(text->find("(1,3,8,8)"), std::string::npos);
  EXPECT_NE(text->find("node2"), std::string::npos);
  EXPECT_NE(text->find("Total Operator Elapsed Time(us): 6\n"),
            std::string::npos);
}

TEST_F(PerfTest, ContextWithoutTheFlagSaysThatNothingWasRecorded) {
  const TestSession session = Open();
  MakeReady(session, 1, "layers=3");
  ASSERT_TRUE(Submit(session, 1, 0).ok());
  RunReady();
  EXPECT_NE(session->PerfDetail(1)->find("RKNN_FLAG_COLLECT_PERF_MASK"),
            std::string::npos);
}

TEST_F(PerfTest, FailedRunKeepsTheTimesOfTheLastGoodOne) {
  const TestSession session = Open();
  MakeReady(session, 1, "layers=3", 0x8);
  ASSERT_TRUE(Submit(session, 1, 0).ok());
  RunReady();
  device.FailJobs(absl::InternalError("broken"));
  ASSERT_TRUE(Submit(session, 1, 0).ok());
  RunReady();
  EXPECT_NE(session->PerfDetail(1)->find("Time(us): 6\n"), std::string::npos);
}

}  // namespace
}  // namespace rknnd::core
