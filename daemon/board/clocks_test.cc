// Tests of clocks: what is read, pinned and put back.

#include "daemon/board/clocks.h"

#include <gmock/gmock.h>

#include <string>

#include "daemon/board/testing/board_tree.h"
#include "gtest/gtest.h"

namespace rknnd::board {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr char kNpu[] = "/sys/class/devfreq/fdab0000.npu";
constexpr char kDdr[] = "/sys/class/devfreq/dmc";
constexpr char kBigCpus[] = "/sys/devices/system/cpu/cpufreq/policy4";

class ClocksTest : public ::testing::Test {
 protected:
  [[nodiscard]] std::string Get(const std::string& folder,
                                const char* file) const {
    return tree_.Get(folder + "/" + file);
  }
  [[nodiscard]] std::string record() const { return tree_.root() + "/record"; }

  testing::BoardTree tree_;
  Files files_{tree_.root()};
};

TEST_F(ClocksTest, EachClockIsReadInHertz) {
  tree_.AddClocks();
  tree_.Put("/sys/class/devfreq/fb000000.gpu/governor", "simple_ondemand\n");

  const auto clocks = Clocks(&files_, "").Read();

  ASSERT_THAT(clocks, SizeIs(4));
  EXPECT_EQ(clocks[0].name, "npu");
  EXPECT_EQ(clocks[0].hz, 300'000'000U);
  EXPECT_EQ(clocks[0].max_hz, 1'000'000'000U);
  EXPECT_EQ(clocks[0].governor, "rknpu_ondemand");
  EXPECT_EQ(clocks[1].name, "ddr");
  EXPECT_EQ(clocks[2].name, "cpu0");
  EXPECT_EQ(clocks[3].name, "cpu4");
  EXPECT_EQ(clocks[3].max_hz, 2'256'000'000U);
  EXPECT_FALSE(clocks[0].pinned);
}

TEST_F(ClocksTest, WhatTheKernelDoesNotSayIsZero) {
  tree_.Folder(kNpu);
  const auto clocks = Clocks(&files_, "").Read();
  ASSERT_THAT(clocks, SizeIs(1));
  EXPECT_EQ(clocks[0].hz, 0U);
  EXPECT_EQ(clocks[0].governor, "");
}

TEST_F(ClocksTest, PinnedClocksArePutBackExactly) {
  tree_.AddClocks();
  Clocks clocks(&files_, record());

  ASSERT_TRUE(clocks.Pin().ok());
  EXPECT_EQ(Get(kNpu, "governor"), "performance");
  EXPECT_EQ(Get(kDdr, "governor"), "performance");
  EXPECT_EQ(Get(kBigCpus, "scaling_governor"), "performance");
  EXPECT_TRUE(clocks.Read()[0].pinned);

  EXPECT_THAT(clocks.Unpin(), IsEmpty());
  EXPECT_EQ(Get(kNpu, "governor"), "rknpu_ondemand");
  EXPECT_EQ(Get(kDdr, "governor"), "dmc_ondemand");
  EXPECT_EQ(Get(kBigCpus, "scaling_governor"), "ondemand");
  EXPECT_FALSE(clocks.Read()[0].pinned);
  EXPECT_FALSE(tree_.Has("/record"));
}

TEST_F(ClocksTest, UserspaceGovernorIsToldTheHighestRate) {
  tree_.Put(std::string(kNpu) + "/governor", "userspace\n");
  tree_.Put(std::string(kNpu) + "/available_governors", "userspace\n");
  tree_.Put(std::string(kNpu) + "/max_freq", "1000000000\n");
  tree_.Put(std::string(kNpu) + "/userspace/set_freq", "600000000\n");
  Clocks clocks(&files_, "");

  ASSERT_TRUE(clocks.Pin().ok());
  EXPECT_EQ(Get(kNpu, "userspace/set_freq"), "1000000000");
  clocks.Unpin();
  EXPECT_EQ(Get(kNpu, "userspace/set_freq"), "600000000");
  EXPECT_EQ(Get(kNpu, "governor"), "userspace");
}

TEST_F(ClocksTest, WithoutAGovernorTheLowestRateIsRaised) {
  tree_.Put(std::string(kNpu) + "/governor", "rknpu_ondemand\n");
  tree_.Put(std::string(kNpu) + "/available_governors", "rknpu_ondemand\n");
  tree_.Put(std::string(kNpu) + "/min_freq", "300000000\n");
  tree_.Put(std::string(kNpu) + "/max_freq", "1000000000\n");
  Clocks clocks(&files_, "");

  ASSERT_TRUE(clocks.Pin().ok());
  EXPECT_EQ(Get(kNpu, "min_freq"), "1000000000");
  EXPECT_EQ(Get(kNpu, "governor"), "rknpu_ondemand");
  clocks.Unpin();
  EXPECT_EQ(Get(kNpu, "min_freq"), "300000000");
}

TEST_F(ClocksTest, TwoPinsAreUndoneByTheLast) {
  tree_.AddClocks();
  Clocks clocks(&files_, record());
  ASSERT_TRUE(clocks.Pin().ok());
  ASSERT_TRUE(clocks.Pin().ok());
  clocks.Unpin();
  EXPECT_EQ(Get(kNpu, "governor"), "performance");
  clocks.Unpin();
  EXPECT_EQ(Get(kNpu, "governor"), "rknpu_ondemand");
  // One too many changes nothing.
  clocks.Unpin();
  EXPECT_EQ(clocks.pins(), 0U);
}

TEST_F(ClocksTest, CrashIsUndoneByTheNextStart) {
  tree_.AddClocks();
  {
    Clocks crashed(&files_, record());
    ASSERT_TRUE(crashed.Pin().ok());
  }
  ASSERT_EQ(Get(kNpu, "governor"), "performance");

  Clocks clocks(&files_, record());
  EXPECT_THAT(clocks.Recover(), ElementsAre(HasSubstr("4 settings")));

  EXPECT_EQ(Get(kNpu, "governor"), "rknpu_ondemand");
  EXPECT_EQ(Get(kBigCpus, "scaling_governor"), "ondemand");
  EXPECT_FALSE(tree_.Has("/record"));
  EXPECT_THAT(Clocks(&files_, record()).Recover(), IsEmpty());
}

TEST_F(ClocksTest, RecordOfAnotherFileIsNotFollowed) {
  tree_.AddClocks();
  tree_.Put("/etc/passwd", "root\n");
  tree_.Put("/record",
            "/etc/passwd\tx\n"
            "/sys/class/devfreq/../../../etc/passwd\tx\n"
            "no tab\n");
  Clocks clocks(&files_, record());
  EXPECT_THAT(clocks.Recover(), Contains(HasSubstr("no clock's")).Times(3));
  EXPECT_EQ(tree_.Get("/etc/passwd"), "root");
}

TEST_F(ClocksTest, ClockThatCannotBeSetIsNamedAndTheOthersArePinned) {
  tree_.AddClocks();
  // A folder in place of the file: nobody can write it, root neither.
  tree_.Remove(std::string(kDdr) + "/governor");
  tree_.Remove(std::string(kDdr) + "/min_freq");
  tree_.Folder(std::string(kDdr) + "/governor");
  Clocks clocks(&files_, "");

  const auto complaints = clocks.Pin();

  ASSERT_TRUE(complaints.ok());
  EXPECT_THAT(*complaints, ElementsAre(HasSubstr("clock 'ddr'")));
  EXPECT_THAT(complaints->front(), HasSubstr("/sys/class/devfreq/dmc/"));
  EXPECT_EQ(Get(kNpu, "governor"), "performance");
  EXPECT_FALSE(clocks.Read()[1].pinned);
}

TEST_F(ClocksTest, BoardWithoutClocksSaysWhereItLooked) {
  const auto pinned = Clocks(&files_, "").Pin();
  EXPECT_EQ(pinned.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(pinned.status().message()),
              HasSubstr("/sys/class/devfreq/"));
}

TEST_F(ClocksTest, WithoutRoomForTheRecordNothingIsChanged) {
  tree_.AddClocks();
  Clocks clocks(&files_, tree_.root() + "/missing/record");
  const auto pinned = clocks.Pin();
  EXPECT_EQ(pinned.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(pinned.status().message()),
              HasSubstr("/missing/record"));
  EXPECT_EQ(Get(kNpu, "governor"), "rknpu_ondemand");
}

}  // namespace
}  // namespace rknnd::board
