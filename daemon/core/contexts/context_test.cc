// Tests of flags and core masks.

#include "daemon/core/contexts/context.h"

#include <string>

#include "daemon/core/testing/core_fixture.h"
#include "gtest/gtest.h"

namespace rknnd::core {
namespace {

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

TEST(ParseFlagsTest, HintsAndTheClientsOwnAreAccepted) {
  for (const uint32_t flag :
       {0x4U, 0x20U, 0x40U, 0x80U, 0x400U, 0x800U, 0x2000U, 0x4000U, 0x8000U}) {
    EXPECT_TRUE(ParseFlags(flag).ok()) << flag;
  }
}

TEST(ParseFlagsTest, SharedSramNeedsSram) {
  EXPECT_TRUE(ParseFlags(0x1800)->share_sram);
  EXPECT_FALSE(ParseFlags(0x800)->share_sram);
  EXPECT_EQ(ParseFlags(0x1000).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(ParseFlagsTest, MemoryFromOutsideIsOfTwoKinds) {
  EXPECT_FALSE(ParseFlags(0)->internal_outside);
  EXPECT_TRUE(ParseFlags(0x10)->internal_outside);
  EXPECT_TRUE(ParseFlags(0x10)->weights_outside);
  EXPECT_TRUE(ParseFlags(0x200)->internal_outside);
  EXPECT_FALSE(ParseFlags(0x200)->weights_outside);
  EXPECT_TRUE(ParseFlags(0x10000).ok());
}

TEST(ParseFlagsTest, UnknownFlagsAreRefused) {
  EXPECT_EQ(ParseFlags(0x80000000).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(ResolveCoreMaskTest, AutoMeansAnyCore) {
  EXPECT_EQ(*ResolveCoreMask(0, Device(3)), (CoreChoice{0b111, false}));
  EXPECT_EQ(*ResolveCoreMask(0, Device(2)), (CoreChoice{0b11, false}));
}

TEST(ResolveCoreMaskTest, SingleCoresAreKept) {
  for (const uint32_t mask : {1U, 2U, 4U}) {
    EXPECT_EQ(*ResolveCoreMask(mask, Device(3)), (CoreChoice{mask, false}));
  }
}

TEST(ResolveCoreMaskTest, SeveralCoresAreAGang) {
  EXPECT_EQ(*ResolveCoreMask(3, Device(3)), (CoreChoice{0b011, true}));
  EXPECT_EQ(*ResolveCoreMask(7, Device(3)), (CoreChoice{0b111, true}));
  EXPECT_EQ(*ResolveCoreMask(0xffff, Device(3)), (CoreChoice{0b111, true}));
  EXPECT_EQ(*ResolveCoreMask(3, Device(2)), (CoreChoice{0b011, true}));
  EXPECT_EQ(*ResolveCoreMask(0xffff, Device(2)), (CoreChoice{0b011, true}));
}

TEST(ResolveCoreMaskTest, MissingCoreIsNamed) {
  for (const uint32_t mask : {4U, 7U}) {
    const absl::Status status = ResolveCoreMask(mask, Device(2)).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_NE(status.message().find("core 2 of core mask RKNN_NPU_CORE_"),
              std::string::npos);
    EXPECT_NE(status.message().find("rk3576 has cores 0 to 1"),
              std::string::npos);
  }
}

TEST(ResolveCoreMaskTest, OtherMasksAreRefused) {
  for (const uint32_t mask : {5U, 6U, 8U, 0x10000U, UINT32_MAX}) {
    EXPECT_EQ(ResolveCoreMask(mask, Device(3)).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
}

TEST(ResolveCoreMaskTest, OneCoreTakesEveryMaskUnlessItsRuntimeHasNone) {
  driver::DeviceInfo device = Device(1);
  for (const uint32_t mask : {0U, 1U, 4U, 5U, 7U, 0xffffU}) {
    EXPECT_EQ(*ResolveCoreMask(mask, device), (CoreChoice{1, false}));
  }
  device.soc = "rv1106";
  device.limits = driver::kNoCoreMask;
  EXPECT_TRUE(ResolveCoreMask(0, device).ok());
  for (const uint32_t mask : {1U, 7U}) {
    const absl::Status status = ResolveCoreMask(mask, device).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_NE(status.message().find("rv1106 has one core"), std::string::npos);
  }
}

}  // namespace
}  // namespace rknnd::core
