#include "driver/soft/soc.h"

#include <gtest/gtest.h>

#include <string>

#include "driver/device.h"

namespace rknnd::soft {
namespace {

SocProfile Soc(const std::string& name) {
  absl::StatusOr<SocProfile> soc = FindSoc(name);
  EXPECT_TRUE(soc.ok()) << name;
  return soc.ok() ? *soc : SocProfile{};
}

TEST(SocTest, EveryPlatformOfTheGuideIsThere) {
  for (const char* name :
       {"rk2118", "rk3562", "rk3566", "rk3568", "rk3576", "rk3588", "rk3588s",
        "rv1103", "rv1103b", "rv1106", "rv1106b"}) {
    EXPECT_TRUE(FindSoc(name).ok()) << name;
  }
}

TEST(SocTest, CaseDoesNotMatter) {
  EXPECT_STREQ(Soc("RK3588S").name, "rk3588s");
}

TEST(SocTest, AnUnknownOneIsAnErrorThatListsTheKnown) {
  const absl::Status status = FindSoc("rk9999").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_NE(status.message().find("'rk9999'"), std::string::npos);
  EXPECT_NE(status.message().find("rv1106b"), std::string::npos);
}

// Table 5-1 of the guide.
TEST(SocTest, BlocksOfChannelsAreTheGuides) {
  struct {
    const char* name;
    uint32_t int8, int16, half;
  } constexpr kBlocks[] = {
      {"rk3588", 16, 8, 8}, {"rk3576", 16, 8, 8}, {"rk3562", 16, 8, 8},
      {"rk3566", 8, 4, 4},  {"rk3568", 8, 4, 4},  {"rk2118", 8, 4, 4},
      {"rv1103", 16, 8, 8}, {"rv1106", 16, 8, 8}, {"rv1103b", 8, 4, 4},
      {"rv1106b", 8, 4, 4},
  };
  for (const auto& expected : kBlocks) {
    const SocProfile soc = Soc(expected.name);
    EXPECT_EQ(soc.int8_block, expected.int8) << expected.name;
    EXPECT_EQ(soc.int16_block, expected.int16) << expected.name;
    EXPECT_EQ(soc.half_block, expected.half) << expected.name;
  }
}

// Table 5-2 of the guide.
TEST(SocTest, WidthsOfImagesAreAlignedAsTheGuideSays) {
  for (const char* name : {"rk3588", "rk3576", "rk3562", "rv1103", "rv1106"}) {
    EXPECT_EQ(Soc(name).width_alignment, 16U) << name;
  }
  for (const char* name : {"rk3566", "rk3568", "rv1103b", "rv1106b"}) {
    EXPECT_EQ(Soc(name).width_alignment, 8U) << name;
  }
}

TEST(SocTest, OnlyTheRk3588HasSram) {
  EXPECT_EQ(Soc("rk3588").sram_bytes, 978944U);
  EXPECT_EQ(Soc("rk3588s").sram_bytes, 978944U);
  EXPECT_EQ(Soc("rk3588").sram_base, 0xff001000U);
  for (const char* name : {"rk3576", "rk3562", "rk3566", "rv1106"}) {
    EXPECT_EQ(Soc(name).sram_bytes, 0U) << name;
  }
}

TEST(SocTest, LimitsAreThoseOfTheSocsRuntime) {
  for (const char* name : {"rv1103", "rv1103b", "rv1106", "rv1106b"}) {
    EXPECT_EQ(Soc(name).limits, driver::kZeroCopyOnly |
                                    driver::kNoFloat32Outputs |
                                    driver::kNoLayerTimes |
                                    driver::kNoDupContext | driver::kNoCoreMask)
        << name;
  }
  EXPECT_EQ(Soc("rk2118").limits, driver::kZeroCopyOnly |
                                      driver::kNoDupContext |
                                      driver::kNoCoreMask);
  for (const char* name : {"rk3562", "rk3566", "rk3568"}) {
    EXPECT_EQ(Soc(name).limits, driver::kAnyCoreMask) << name;
  }
  EXPECT_EQ(Soc("rk3588").limits, 0U);
  EXPECT_EQ(Soc("rk3576").limits, 0U);
}

TEST(SocTest, ModelsOfOneFamilyRunOnAllItsSocs) {
  struct {
    const char *target, *soc;
  } constexpr kPairs[] = {
      {"rk3566", "rk3568"},   {"rk3568", "rk3566"},   {"rk3588", "rk3588s"},
      {"RK3588S", "rk3588"},  {"rv1103", "rv1106"},   {"rv1106", "rv1103"},
      {"rv1103b", "rv1106b"}, {"rv1106b", "rv1103b"}, {"", "rk3576"},
  };
  for (const auto& pair : kPairs) {
    EXPECT_TRUE(CheckTarget(pair.target, Soc(pair.soc), "m").ok())
        << pair.target << " on " << pair.soc;
  }
}

TEST(SocTest, ModelsOfAnotherFamilyAreRefusedInTheWordsUsersLookFor) {
  struct {
    const char *target, *soc;
  } constexpr kPairs[] = {
      {"rk3566", "rk3588"}, {"rk3576", "rk3588"}, {"rv1103b", "rv1103"},
      {"rk3562", "rk3566"}, {"rk1808", "rk3588"},
  };
  for (const auto& pair : kPairs) {
    const absl::Status status = CheckTarget(pair.target, Soc(pair.soc), "m");
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_NE(status.message().find("target_platform="), std::string::npos)
        << status;
  }
}

TEST(SocTest, EveryProfileCanBeComputedWith) {
  for (const char* name :
       {"rk2118", "rk3562", "rk3566", "rk3568", "rk3576", "rk3588", "rk3588s",
        "rv1103", "rv1103b", "rv1106", "rv1106b"}) {
    const SocProfile soc = Soc(name);
    EXPECT_GT(soc.cores, 0U) << name;
    EXPECT_GT(soc.max_mhz, 0U) << name;
    EXPECT_GT(soc.macs_per_cycle, 0U) << name;
    EXPECT_GT(soc.timing.mac, 0) << name;
    EXPECT_GT(soc.timing.conv_bytes, 0) << name;
    EXPECT_GT(soc.timing.mover_bytes, 0) << name;
    EXPECT_GT(soc.estimate_gbs, 0) << name;
    EXPECT_GE(soc.ddr_gbs, soc.core_gbs) << name;
  }
}

}  // namespace
}  // namespace rknnd::soft
